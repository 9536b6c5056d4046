// Chronus' headline on the trace its authors published with their simulator: Philly jobs with drawn
// deadlines, of which every second one is taken as best effort, on clusters of three sizes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/rng.h"
#include "lab/reproduction.h"
#include "run/run.h"
#include "trace/reader.h"

namespace berth {

Result<Reproduced> reproduce_chronus(const ReproduceOptions& options);

namespace {

constexpr std::size_t kQuickJobs = 1500;

/// Jobs keep their deadline or lose it, half and half.
void mix(Trace& trace, std::uint64_t seed) {
  Rng rng = Rng{seed}.fork("best effort");
  for (TraceJob& job : trace.jobs) {
    if (rng.below(2) == 0) job.deadline.reset();
  }
}

struct Measured {
  double missed = 0;   // share of jobs with a deadline; a refused job has missed it
  double refused = 0;  // the part of these that was refused
  double work = 0;     // share of the GPU time of jobs with a deadline that missed it
  double jct = 0;      // mean seconds, best effort
};

// By jobs and by GPU time: a policy that keeps promises to long jobs looks worse by the first.
Result<Measured> measure(const Trace& trace, const Cluster& cluster, const std::string& policy,
                         const Settings& settings = {}) {
  RunSpec spec;
  spec.policy = policy;
  spec.settings = settings;
  spec.sim.costs.resume = std::chrono::seconds{30};
  spec.sim.costs.migrate = std::chrono::seconds{30};
  BERTH_TRY(Run planned, make_run(trace, cluster, spec));
  BERTH_TRY(const RunData run, planned.run());
  Measured measured;
  double promised = 0, others = 0, work = 0;
  for (const JobOutcome& job : run.jobs.rows) {
    if (job.deadline) {
      ++promised;
      const double gpu_time = to_seconds(job.duration) * job.gpus;
      work += gpu_time;
      measured.missed += job.missed_deadline() ? 1 : 0;
      measured.work += job.missed_deadline() ? gpu_time : 0;
      measured.refused += job.state == JobState::Rejected ? 1 : 0;
    } else if (job.ran_to_an_end()) {
      ++others;
      measured.jct += to_seconds(job.jct());
    }
  }
  measured.missed /= std::max(promised, 1.0);
  measured.refused /= std::max(promised, 1.0);
  measured.work /= std::max(work, 1.0);
  measured.jct /= std::max(others, 1.0);
  return measured;
}

std::string against(const Measured& ours, const Measured& other) {
  return fmt::format(
      "missed {:.1f} % against {:.1f} % ({:.1f} x fewer), by GPU time {:.1f} % against {:.1f} %; "
      "best-effort JCT {:.2f} x shorter",
      100 * ours.missed, 100 * other.missed, other.missed / std::max(ours.missed, 1e-9),
      100 * ours.work, 100 * other.work, other.jct / ours.jct);
}

/// What cutting time into leases costs before anybody competes, by arithmetic alone.
struct Cutting {
  double hopeless = 0;  // share of jobs with a deadline that even an empty cluster would refuse
  double reserved = 0;  // GPU time of the leases they need, over what they take
};

Cutting cutting(const Trace& trace, double lease) {
  constexpr double kRestart = 30;
  constexpr double kSlack = 1.05;
  Cutting sum;
  double jobs = 0, taken = 0;
  for (const TraceJob& job : trace.jobs) {
    if (!job.deadline) continue;
    const double leases = std::ceil(kSlack * to_seconds(job.duration) / (lease - kRestart));
    // Planned from the next term on, and done by the last term that ends before the deadline.
    const double first = std::ceil(to_seconds(job.submit.time_since_epoch()) / lease);
    const double end = std::floor(to_seconds(job.deadline->time_since_epoch()) / lease);
    ++jobs;
    sum.hopeless += leases > end - first ? 1 : 0;
    sum.reserved += leases * lease * job.gpus;
    taken += to_seconds(job.duration) * job.gpus;
  }
  return {sum.hopeless / std::max(jobs, 1.0), sum.reserved / std::max(taken, 1.0)};
}

/// Why another one misses fewer.
std::string why_more(const Measured& ours, const Measured& other, const Cutting& cut) {
  if (ours.missed <= other.missed) return "";
  if (ours.refused < cut.hopeless + 1e-3)
    return "those refused have too few whole terms before their deadline, see the note";
  if (ours.work < other.work)
    return "the reverse by GPU time: promises to long jobs are kept, and short ones refused";
  return "";
}

/// How many times fewer are missed than by policies that do not know deadlines.
struct Gain {
  double least = 1e9;
  double most = 0;
};

Result<void> add_figures(const Trace& trace, const Cluster& cluster, Reproduced& result,
                         Gain& gain) {
  const std::int64_t gpus = cluster.total_gpus();
  const Cutting cut = cutting(trace, 1200);
  BERTH_TRY(const Measured ours, measure(trace, cluster, "chronus"));
  for (const char* policy : {"fifo", "tiresias-l", "srtf", "edf"}) {
    BERTH_TRY(const Measured other, measure(trace, cluster, policy));
    const bool aware = std::string_view(policy) == "edf";
    result.figures.push_back(
        {.what = fmt::format("{} GPUs: chronus against {} ({}aware of deadlines)", gpus, policy,
                             aware ? "" : "not "),
         .published = "up to 14.7 x fewer missed, 19.9 x best-effort JCT over all",
         .ours = against(ours, other),
         .why = why_more(ours, other, cut)});
    if (aware) continue;
    const double times = other.missed / std::max(ours.missed, 1e-9);
    gain = {std::min(gain.least, times), std::max(gain.most, times)};
  }
  BERTH_TRY(const Measured fine, measure(trace, cluster, "chronus", {{"lease", "5m"}}));
  const Cutting shorter = cutting(trace, 300);
  result.figures.push_back(
      {.what = fmt::format("{} GPUs: leases of 20 min against 5 min", gpus),
       .published = "",
       .ours = against(ours, fine),
       .why = fmt::format("leases of 5 min refuse {:.1f} % on an empty cluster, and take {:.2f} x "
                          "the GPU time that jobs need",
                          100 * shorter.hopeless, shorter.reserved)});
  result.notes.push_back(fmt::format(
      "On {} GPUs chronus refused {:.1f} % of the jobs with a deadline; {:.2f} % were admitted and "
      "late. Leases of 20 min refuse {:.1f} % whatever the cluster (too few whole terms end by "
      "their deadline), and take {:.2f} x the GPU time that jobs need.",
      gpus, 100 * ours.refused, 100 * (ours.missed - ours.refused), 100 * cut.hopeless,
      cut.reserved));
  return {};
}

}  // namespace

Result<Reproduced> reproduce_chronus(const ReproduceOptions& options) {
  ReadOptions reading;
  reading.skip_invalid = true;  // 205 rows ask for no GPU
  BERTH_TRY(Trace trace,
            read_trace(options.data + "/chronus/trace_job_Philly_SLO.csv.gz", reading));
  if (options.quick) trace.jobs.resize(std::min(trace.jobs.size(), kQuickJobs));
  mix(trace, options.seed);
  std::vector<std::string> clusters{"160x8:v100", "120x8:v100", "60x8:v100"};
  if (options.quick) clusters = {"32x8:v100"};

  Reproduced result;
  result.setting = fmt::format(
      "{} Philly jobs of the authors' simulator trace over 14 days, 1,097 GPUs asked for on "
      "average; every second one (at random) keeps its deadline, the others are best effort; exact "
      "run times, 30 s for every resume and migration; a refused job counts as missed",
      trace.jobs.size());
  Gain gain;
  for (const std::string& text : clusters) {
    BERTH_TRY(const Cluster cluster, parse_cluster_short(text));
    BERTH_TRY_VOID(add_figures(trace, cluster, result, gain));
  }
  result.headline = {"up to 14.7 x fewer deadlines missed",
                     fmt::format("{:.1f} to {:.1f} x fewer than policies that do not know them",
                                 gain.least, gain.most),
                     judged_everywhere(gain.least, gain.most, 14.7)};
  return result;
}

}  // namespace berth
