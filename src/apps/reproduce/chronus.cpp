// Chronus' headline on the trace its authors published with their simulator: Philly jobs with drawn
// deadlines, of which every second one is taken as best effort, on clusters of two sizes.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "apps/reproduce.h"
#include "apps/run.h"
#include "base/rng.h"
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
  double jct = 0;      // mean seconds, best effort
};

Result<Measured> measure(const Trace& trace, const Cluster& cluster, const std::string& policy) {
  RunSpec spec;
  spec.policy = policy;
  spec.sim.costs.resume = std::chrono::seconds{30};
  spec.sim.costs.migrate = std::chrono::seconds{30};
  BERTH_TRY(const RunData run, run_one(trace, cluster, spec));
  Measured measured;
  double promised = 0, others = 0;
  for (const JobOutcome& job : run.jobs.rows) {
    if (job.deadline) {
      ++promised;
      measured.missed += job.missed_deadline() ? 1 : 0;
      measured.refused += job.state == JobState::Rejected ? 1 : 0;
    } else if (job.ran_to_an_end()) {
      ++others;
      measured.jct += to_seconds(job.jct());
    }
  }
  measured.missed /= std::max(promised, 1.0);
  measured.refused /= std::max(promised, 1.0);
  measured.jct /= std::max(others, 1.0);
  return measured;
}

std::string against(const Measured& ours, const Measured& other) {
  return fmt::format("{:.1f} x fewer missed ({:.1f} % against {:.1f} %), {:.2f} x best-effort JCT",
                     other.missed / std::max(ours.missed, 1e-9), 100 * ours.missed,
                     100 * other.missed, other.jct / ours.jct);
}

}  // namespace

Result<Reproduced> reproduce_chronus(const ReproduceOptions& options) {
  ReadOptions reading;
  reading.skip_invalid = true;  // 205 rows ask for no GPU
  BERTH_TRY(Trace trace,
            read_trace(options.data + "/chronus/trace_job_Philly_SLO.csv.gz", reading));
  if (options.quick) trace.jobs.resize(std::min(trace.jobs.size(), kQuickJobs));
  mix(trace, options.seed);
  const std::array<std::string, 2> clusters{"160x8:v100", "120x8:v100"};
  const std::array<std::string, 4> baselines{"fifo", "tiresias-l", "srtf", "edf"};

  Reproduced result;
  result.setting = fmt::format(
      "{} Philly jobs of the authors' simulator trace over 14 days, 1,097 GPUs asked for on "
      "average; every second one (at random) keeps its deadline, the others are best effort; exact "
      "run times, 30 s for every resume and migration; a refused job counts as missed",
      trace.jobs.size());
  for (std::size_t c = 0; c < (options.quick ? 1 : clusters.size()); ++c) {
    BERTH_TRY(const Cluster cluster, parse_cluster_short(clusters[c]));
    BERTH_TRY(const Measured ours, measure(trace, cluster, "chronus"));
    for (const std::string& policy : baselines) {
      BERTH_TRY(const Measured other, measure(trace, cluster, policy));
      const bool aware = policy == "edf";
      result.figures.push_back(
          {.what = fmt::format("{} GPUs: chronus against {} ({})", cluster.total_gpus(), policy,
                               aware ? "aware of deadlines" : "not aware of deadlines"),
           .published = "up to 14.7 x fewer missed, 19.9 x best-effort JCT over all",
           .ours = against(ours, other),
           .why = ""});
    }
    result.notes.push_back(
        fmt::format("On {} GPUs chronus refused {:.1f} % of the jobs with a "
                    "deadline; {:.2f} % were admitted and late.",
                    cluster.total_gpus(), 100 * ours.refused, 100 * (ours.missed - ours.refused)));
  }
  return result;
}

}  // namespace berth
