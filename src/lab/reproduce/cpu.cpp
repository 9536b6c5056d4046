// The CPU poster's headline: cores by what each model gains instead of in proportion to GPUs. The
// poster describes neither cluster nor trace; the mix is its own table of sweet points in equal
// parts, on servers of 24 cores, at a load that bound cores can just bear
// (jobs take 1.6 times as long with them).
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/portable_math.h"
#include "base/rng.h"
#include "lab/reproduction.h"
#include "run/run.h"

namespace berth {

Result<Reproduced> reproduce_cpu(const ReproduceOptions& options);

namespace {

struct CpuClass {
  std::string_view model;
  std::int32_t sweet_point;
};
constexpr std::array<CpuClass, 8> kPoster{{{"LeNet", 20},
                                           {"AlexNet", 19},
                                           {"OverFeat", 22},
                                           {"GoogLeNet", 11},
                                           {"LanguageModel", 1},
                                           {"Bi-Att-Flow", 8},
                                           {"DeepSpeech", 3},
                                           {"WaveNet", 3}}};
constexpr std::int32_t kServers = 16;
constexpr std::int32_t kGpus = 4;
constexpr std::int32_t kCores = 24;
constexpr double kSpeed = 320;  // samples per second of one GPU
constexpr double kMeanHours = 1;
constexpr double kLoad = 0.6;  // of all GPUs, with cores enough

/// A curve of the poster's form that feeds the GPU exactly at the sweet point.
Profile profile_of(const CpuClass& each) {
  Profile profile;
  profile.name = each.model;
  profile.batch = 32;
  profile.iteration = {.alpha = 0, .beta = 1 / kSpeed, .gradient_bytes = 0, .overlap = 1};
  const double gain = kSpeed / (portable_log(each.sweet_point) + 0.2 * each.sweet_point);
  profile.cpu = {
      .log_gain = gain, .linear_gain = 0.2 * gain, .plateau = kSpeed, .theta = each.sweet_point};
  return profile;
}

Trace make_trace(std::size_t jobs, std::uint64_t seed) {
  Rng rng = Rng{seed}.fork("cpu poster");
  Trace trace;
  trace.source = "one-GPU jobs of the poster's models";
  const double gap = kMeanHours * 3600 / (kServers * kGpus * kLoad);
  double now = 0;
  for (std::size_t i = 0; i < jobs; ++i) {
    TraceJob job;
    job.id = trace.names.intern(fmt::format("{}", i + 1));
    job.model = trace.names.intern(kPoster[rng.below(kPoster.size())].model);
    job.submit = seconds_to_time(now);
    job.duration = seconds_to_duration(60 + rng.exponential(kMeanHours * 3600 - 60));
    trace.jobs.push_back(job);
    now += rng.exponential(gap);
  }
  trace.normalise();
  return trace;
}

Result<Cluster> make_cluster() {
  BERTH_TRY(Cluster cluster, load_cluster(fmt::format("{}x{}", kServers, kGpus)));
  for (Node& node : cluster.nodes) node.cpus_milli = kCores * 1000;
  return cluster;
}

struct Figures {
  double jct = 0;          // seconds, average
  double utilisation = 0;  // of GPUs that are held: work done in the time they are
};

Result<Figures> run_mode(std::string_view mode, std::size_t jobs, std::uint64_t seed,
                         const std::shared_ptr<const ProfileSet>& profiles) {
  const Trace trace = make_trace(jobs, seed);
  BERTH_TRY(const Cluster cluster, make_cluster());
  RunSpec spec;
  spec.policy = "fifo";
  spec.placement = "best-fit";
  spec.seed = seed;
  spec.effects = {.sharing = false, .cpu = true};
  spec.profiles = profiles;
  spec.cpu = mode;
  BERTH_TRY(Run planned, make_run(trace, cluster, spec));
  BERTH_TRY(const RunData run, planned.run());
  return Figures{run.summary.avg_jct.value_or(0),
                 run.trace.gpu_seconds / 3600 / run.summary.gpu_hours.value_or(1)};
}

Result<Figures> mean_of(std::string_view mode, const ReproduceOptions& options,
                        const std::shared_ptr<const ProfileSet>& profiles) {
  const std::uint64_t seeds = options.quick ? 1 : 3;
  const std::size_t jobs = options.quick ? 300 : 2000;
  Figures mean;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    BERTH_TRY(const Figures one, run_mode(mode, jobs, options.seed + i, profiles));
    mean.jct += one.jct / static_cast<double>(seeds);
    mean.utilisation += one.utilisation / static_cast<double>(seeds);
  }
  return mean;
}

std::string change(double from, double to) {
  return fmt::format("{:+.0f} %", 100 * (to / from - 1));
}

}  // namespace

Result<Reproduced> reproduce_cpu(const ReproduceOptions& options) {
  auto known = std::make_shared<ProfileSet>();
  for (const CpuClass& each : kPoster) known->add(profile_of(each));
  const std::shared_ptr<const ProfileSet> profiles = known;
  BERTH_TRY(const Figures bind, mean_of("bind", options, profiles));
  BERTH_TRY(const Figures aware, mean_of("aware", options, profiles));
  BERTH_TRY(const Figures shared, mean_of("shared", options, profiles));

  Reproduced result;
  result.setting = fmt::format(
      "{} servers of {} GPUs and {} cores; one-GPU jobs of the poster's eight models in equal "
      "parts, {:.0f} h on average, load {:.1f}; fifo, {} seeds of {} jobs",
      kServers, kGpus, kCores, kMeanHours, kLoad, options.quick ? 1 : 3,
      options.quick ? 300 : 2000);
  const std::string why = "the poster describes neither its cluster nor its trace";
  result.figures = {
      {"GPU utilisation, aware against bind", "+19 %", change(bind.utilisation, aware.utilisation),
       why},
      {"average JCT, aware against bind", "-34 %", change(bind.jct, aware.jct), why},
      {"average JCT, aware against shared", "not published", change(shared.jct, aware.jct), ""}};
  result.headline = {"JCT 34 % lower", change(bind.jct, aware.jct),
                     judged(bind.jct / aware.jct, 1 / (1 - 0.34))};
  result.notes = {"curves are ln C + 0.2 C up to the sweet points of the poster's table"};
  return result;
}

}  // namespace berth
