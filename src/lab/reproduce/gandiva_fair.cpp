// Gandiva_fair's headline: four users with equal tickets on 200 GPUs of three types; what trading
// gives to each, and that nobody pays for it.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/rng.h"
#include "lab/reproduce/measured_speeds.h"
#include "lab/reproduction.h"
#include "run/run.h"

namespace berth {

Result<Reproduced> reproduce_gandiva_fair(const ReproduceOptions& options);

namespace {

struct Owner {
  std::string_view user;
  std::string_view model;
};
constexpr std::array kOwners{
    Owner{"recommendation", "Recommendation at 2048"}, Owner{"transformer", "Transformer at 16"},
    Owner{"language model", "LM at 10"}, Owner{"image model", "ResNet-18 at 256"}};

/// Every user as many jobs, all at the start; two to eight hours on a V100.
Trace workload(std::size_t jobs_each, std::uint64_t seed) {
  Rng rng = Rng{seed}.fork("gandiva-fair");
  Trace trace;
  trace.source = "synthetic";
  for (std::size_t i = 0; i < jobs_each * kOwners.size(); ++i) {
    const Owner& owner = kOwners[i % kOwners.size()];
    TraceJob job;
    job.id = trace.names.intern(fmt::format("{}", i + 1));
    job.duration = seconds_to_duration(3600 * (2 + 6 * rng.uniform()));
    job.user = trace.names.intern(owner.user);
    job.model = trace.names.intern(owner.model);
    trace.jobs.push_back(job);
  }
  trace.normalise();
  return trace;
}

using Hours = std::array<double, kOwners.size()>;

/// Mean completion time of each user's jobs.
Result<Hours> measure(const Trace& trace, const Cluster& cluster, const MeasuredSpeeds& speeds,
                      Settings settings) {
  RunSpec spec;
  spec.policy = "gandiva-fair";
  spec.settings = std::move(settings);
  spec.profiles = speeds.profiles;
  spec.effects.device = true;
  BERTH_TRY(Run planned, make_run(trace, cluster, spec));
  BERTH_TRY(const RunData run, planned.run());
  Hours hours{};
  // Every user has as many jobs.
  const double each = static_cast<double>(run.jobs.rows.size()) / kOwners.size();
  for (std::size_t i = 0; i < run.jobs.rows.size(); ++i) {
    const auto owner = std::ranges::find(kOwners, trace.text(trace.jobs[i].user), &Owner::user);
    const JobOutcome& job = run.jobs.rows[i];
    hours[static_cast<std::size_t>(owner - kOwners.begin())] +=
        to_seconds(*job.finish - job.submit) / 3600 / each;
  }
  return hours;
}

}  // namespace

Result<Reproduced> reproduce_gandiva_fair(const ReproduceOptions& options) {
  BERTH_TRY(const Cluster cluster, parse_cluster_short("20x4:v100,15x4:p100,15x4:k80"));
  BERTH_TRY(const MeasuredSpeeds speeds, measured_speeds(options.data));
  const std::size_t jobs = options.quick ? 60 : 150;
  const std::uint64_t seeds = options.quick ? 1 : 5;
  Hours with{};
  Hours without{};
  for (std::uint64_t i = 0; i < seeds; ++i) {
    const Trace trace = workload(jobs, options.seed + i);
    BERTH_TRY(const Hours traded, measure(trace, cluster, speeds, {}));
    BERTH_TRY(const Hours kept, measure(trace, cluster, speeds, {{"trading", "off"}}));
    for (std::size_t owner = 0; owner < kOwners.size(); ++owner) {
      with[owner] += traded[owner] / static_cast<double>(seeds);
      without[owner] += kept[owner] / static_cast<double>(seeds);
    }
  }
  Reproduced result;
  result.setting = fmt::format(
      "80 V100, 60 P100 and 60 K80 in servers of 4; four users with equal tickets, {} jobs of one "
      "GPU each at the start, 2 to 8 h on a V100, published throughputs of one model each; mean "
      "of {} seeds; gandiva-fair with trading against without",
      jobs, seeds);
  for (std::size_t owner = 0; owner < kOwners.size(); ++owner) {
    const bool is_first = owner == 0;
    result.figures.push_back(
        {.what =
             fmt::format("average JCT of user {} ({})", kOwners[owner].user, kOwners[owner].model),
         .published =
             is_first ? "nobody worse off" : "up to about 30 % more work for high speedups",
         .ours = fmt::format("{:+.0f} % ({:.1f} h against {:.1f} h)",
                             100 * (with[owner] / without[owner] - 1), with[owner], without[owner]),
         .why = ""});
  }
  double least = 1e9, most = 0;
  for (std::size_t owner = 0; owner < kOwners.size(); ++owner) {
    least = std::min(least, without[owner] / with[owner]);
    most = std::max(most, without[owner] / with[owner]);
  }
  result.headline = {"trading: up to about 30 % more work, nobody worse off",
                     fmt::format("JCT {:.2f} to {:.2f} x shorter by user", least, most),
                     least >= 1 ? judged(most, 1.3) : Judgement::Missed};
  return result;
}

}  // namespace berth
