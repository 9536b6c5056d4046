// The headlines of Pollux and Sia on the workloads their authors published: 160 jobs (or 960) of
// six models, 64 GPUs.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "lab/reproduce/trained_times.h"
#include "lab/reproduction.h"
#include "run/run.h"
#include "trace/reader.h"

namespace berth {

Result<Reproduced> reproduce_pollux(const ReproduceOptions& options);
Result<Reproduced> reproduce_sia(const ReproduceOptions& options);

namespace {

/// Means over the workloads of a set.
struct Measured {
  double jct = 0;
  double wait = 0;
  double p99 = 0;
  double makespan = 0;
  double gpu_hours = 0;
  double unfairness = 0;  // the largest finish-time fairness ratio
};

RunSpec spec_for(std::string policy, Settings settings = {}) {
  RunSpec spec;
  spec.policy = std::move(policy);
  spec.settings = std::move(settings);
  // Their traces declare no range, and all their jobs are elastic.
  if (spec.policy == "pollux" || spec.policy == "sia") spec.settings.emplace_back("elastic", "all");
  spec.effects.device = true;  // profiles stand for a V100; here are none
  // Pollux and Sia charge their restarts themselves.
  if (spec.policy.starts_with("tiresias")) {
    spec.sim.costs.resume = std::chrono::seconds{30};
    spec.sim.costs.migrate = std::chrono::seconds{30};
  }
  return spec;
}

Result<Measured> measure(const std::vector<Trace>& traces, const Cluster& cluster,
                         const RunSpec& spec) {
  Measured sum;
  const auto count = static_cast<double>(traces.size());
  for (const Trace& trace : traces) {
    BERTH_TRY(Run planned, make_run(trace, cluster, spec));
    BERTH_TRY(const RunData run, planned.run());
    sum.jct += run.summary.avg_jct.value_or(0) / count;
    sum.wait += run.summary.avg_queue_time.value_or(0) / count;
    sum.p99 += run.summary.p99_jct.value_or(0) / count;
    sum.makespan += run.summary.makespan.value_or(0) / count;
    sum.unfairness += run.summary.max_ftf.value_or(0) / count;
    sum.gpu_hours += run.summary.gpu_hours.value_or(0) / count;
  }
  return sum;
}

/// The workloads have no run times.
enum class RunTimes : std::uint8_t {
  Trained,  // by the model, for the job's own size and batch
  Nominal,  // the reader's: linear speed-up, nothing lost by the batch
};

struct WorkloadSet {
  std::string folder;
  std::string kind;
  std::string published = {};  // of the average JCT
  int files = 1;
};

Result<std::vector<Trace>> read_set(const ReproduceOptions& options, const Cluster& cluster,
                                    const WorkloadSet& set, RunTimes times) {
  std::vector<Trace> traces;
  for (int i = 1; i <= (options.quick ? 1 : set.files); ++i) {
    BERTH_TRY(Trace trace,
              read_trace(fmt::format("{}/{}/workload-{}.csv", options.data, set.folder, i)));
    if (times == RunTimes::Trained) set_trained_times(trace, cluster, built_in_profiles());
    traces.push_back(std::move(trace));
  }
  return traces;
}

std::string below(double ours, double theirs) {
  const double percent = 100 * (1 - ours / theirs);
  return fmt::format("{:.0f} % {}", std::abs(percent), percent >= 0 ? "lower" : "higher");
}

std::string hours(double seconds) { return fmt::format("{:.2f} h", seconds / 3600); }

std::string jct_text(const Measured& ours, const Measured& other) {
  return fmt::format("{} ({} against {})", below(ours.jct, other.jct), hours(ours.jct),
                     hours(other.jct));
}

double gpu_hours_asked(const std::vector<Trace>& traces) {
  double sum = 0;
  for (const Trace& trace : traces) {
    for (const TraceJob& job : trace.jobs) sum += to_seconds(job.duration) * job.gpus / 3600;
  }
  return sum / static_cast<double>(traces.size());
}

/// As published: all of the hundred generations (the default where quick answers are wanted), and
/// as many GPUs as there are.
RunSpec pollux_as_published(const ReproduceOptions& options, Settings settings = {}) {
  if (!options.quick) settings.emplace_back("patience", "100");
  settings.emplace_back("max_gpus", "64");
  return spec_for("pollux", std::move(settings));
}

/// The jobs of both at their own times.
Trace joined(const Trace& a, const Trace& b) {
  Trace both = a;
  for (TraceJob job : b.jobs) {
    job.id = both.names.intern(fmt::format("{} again", b.names.text(job.id)));
    job.model = both.names.intern(b.names.text(job.model));
    both.jobs.push_back(job);
  }
  both.normalise();
  return both;
}

/// Times shorter than tiresias-l.
Result<double> compare_pollux(const ReproduceOptions& options, const Cluster& cluster,
                              const WorkloadSet& set, Reproduced& result) {
  BERTH_TRY(const std::vector<Trace> traces, read_set(options, cluster, set, RunTimes::Trained));
  BERTH_TRY(const Measured base, measure(traces, cluster, spec_for("tiresias-l")));
  BERTH_TRY(const Measured ours, measure(traces, cluster, pollux_as_published(options)));
  result.figures.push_back({fmt::format("average JCT against tiresias-l, {}", set.kind),
                            set.published, jct_text(ours, base),
                            fmt::format("under tiresias-l {:.0f} % of that time is waiting; GPUs "
                                        "asked for: {:.0f} hours",
                                        100 * base.wait / base.jct, gpu_hours_asked(traces))});
  result.figures.push_back({fmt::format("99th percentile of JCT, {}", set.kind), "similarly",
                            fmt::format("{} ({} against {})", below(ours.p99, base.p99),
                                        hours(ours.p99), hours(base.p99)),
                            ""});
  result.figures.push_back(
      {fmt::format("worst finish-time fairness ratio, {}", set.kind), "1.5 to 5.4 x better",
       fmt::format("{:.1f} x ({:.2f} against {:.2f})", base.unfairness / ours.unfairness,
                   ours.unfairness, base.unfairness),
       "ours is the largest ratio of a job's time in the system to that in an equal share of the "
       "cluster, as berth compare prints it; the paper's definition of the share is its own"});
  return base.jct / ours.jct;
}

/// One thing changed at a time, on tuned jobs.
Result<void> add_changes(const ReproduceOptions& options, const Cluster& cluster,
                         const WorkloadSet& tuned, Reproduced& result) {
  WorkloadSet two = tuned;
  two.files = 2;
  BERTH_TRY(const std::vector<Trace> traces, read_set(options, cluster, two, RunTimes::Trained));
  BERTH_TRY(const std::vector<Trace> plain, read_set(options, cluster, two, RunTimes::Nominal));
  const auto add = [&](const std::string& what, const Trace& trace,
                       const RunSpec& spec) -> Result<void> {
    BERTH_TRY(const Measured base, measure({trace}, cluster, spec_for("tiresias-l")));
    BERTH_TRY(const Measured ours, measure({trace}, cluster, spec));
    result.figures.push_back(
        {fmt::format("first workload of tuned jobs, {}", what), "",
         fmt::format("average JCT {}, p99 {}; {:.0f} % of Tiresias' time is waiting",
                     jct_text(ours, base), below(ours.p99, base.p99), 100 * base.wait / base.jct),
         ""});
    return {};
  };
  BERTH_TRY_VOID(add("as above", traces[0], pollux_as_published(options)));
  BERTH_TRY_VOID(
      add("a round ends after 5 generations without gain, at most 16 GPUs (our defaults)",
          traces[0], spec_for("pollux")));
  BERTH_TRY_VOID(add("sizes may more than double at once", traces[0],
                     pollux_as_published(options, {{"growth", "0"}})));
  BERTH_TRY_VOID(add("restarts are free for Pollux", traces[0],
                     pollux_as_published(options, {{"restart", "0"}})));
  BERTH_TRY_VOID(add("own sizes and batches lose nothing (the reader's nominal run times)",
                     plain[0], pollux_as_published(options)));
  if (traces.size() < 2) return {};
  return add("with the jobs of the second in the same hours", joined(traces[0], traces[1]),
             pollux_as_published(options));
}

Result<std::string> by_power(const ReproduceOptions& options, const std::vector<Trace>& traces,
                             const Cluster& cluster) {
  std::string sweep;
  for (const char* p : {"1", "-1", "-10"}) {
    BERTH_TRY(const Measured run,
              measure(traces, cluster, pollux_as_published(options, {{"p", p}})));
    sweep += fmt::format("{}p {}: {} average, {} p99", sweep.empty() ? "" : "; ", p, hours(run.jct),
                         hours(run.p99));
  }
  return sweep;
}

}  // namespace

Result<Reproduced> reproduce_pollux(const ReproduceOptions& options) {
  BERTH_TRY(const Cluster cluster, parse_cluster_short("16x4:t4"));
  Reproduced result;
  result.setting = fmt::format(
      "16 x 4 T4, {} workload(s) of 160 jobs in 8 hours each, with users' tuned and with realistic "
      "sizes and batches; run times of these by the catalogue (fitted to the authors' "
      "measurements) "
      "for as many useful samples as their smallest batch took; restarts cost 30 s; 100 "
      "generations "
      "a round, up to 64 GPUs a job",
      options.quick ? "one" : "three");
  const WorkloadSet tuned{"pollux/workloads", "tuned jobs", "37 to 50 % lower", 3};
  const WorkloadSet realistic{"pollux/workloads-realistic", "realistic configurations",
                              "about 70 % lower and more", 3};
  BERTH_TRY(const double tuned_gain, compare_pollux(options, cluster, tuned, result));
  BERTH_TRY(const double realistic_gain, compare_pollux(options, cluster, realistic, result));
  result.headline = {
      "JCT 37 to 50 % lower than Tiresias' (tuned jobs), 70 % (realistic)",
      fmt::format("{}, {}", below(1, tuned_gain), below(1, realistic_gain)),
      std::max(judged(tuned_gain, 1 / (1 - 0.37)), judged(realistic_gain, 1 / (1 - 0.7)))};
  BERTH_TRY_VOID(add_changes(options, cluster, tuned, result));
  WorkloadSet first = tuned;
  first.files = 1;
  BERTH_TRY(const std::vector<Trace> traces, read_set(options, cluster, first, RunTimes::Trained));
  BERTH_TRY(const std::string sweep, by_power(options, traces, cluster));
  result.figures.push_back({"JCT by the power p, first workload of tuned jobs",
                            "p = -1 near the best average with a better tail than p = 1", sweep,
                            ""});
  RunSpec apart = pollux_as_published(options);
  RunSpec together = pollux_as_published(options, {{"avoid_interference", "off"}});
  apart.effects.locality = together.effects.locality = true;
  BERTH_TRY(const Measured avoided, measure(traces, cluster, apart));
  BERTH_TRY(const Measured allowed, measure(traces, cluster, together));
  result.figures.push_back(
      {"average JCT with and without interference avoidance, gangs share links",
       "avoidance costs next to nothing and keeps JCT flat",
       fmt::format("{} with, {} without", hours(avoided.jct), hours(allowed.jct)),
       "the paper injects a slowdown of its own; ours is the sharing of links"});
  return result;
}

Result<Reproduced> reproduce_sia(const ReproduceOptions& options) {
  BERTH_TRY(const Cluster cluster, parse_cluster_short("6x4:t4,3x8:2080ti,2x8:a100"));
  Reproduced result;
  result.setting =
      "24 T4 in servers of 4, 24 RTX 2080Ti and 16 A100 in servers of 8; the authors' Philly, "
      "Helios (saturn) and newTrace workloads, " +
      std::string(options.quick ? "one" : "three") +
      " of each; device types matter; restarts cost 30 s";
  const std::array<std::pair<const char*, const char*>, 3> sets{
      {{"philly", "Philly, 160 jobs"},
       {"saturn", "Helios, 160 jobs"},
       {"newtrace", "newTrace, 960 jobs"}}};
  double least = 1e9, most = 0;
  for (const auto& [folder, name] : sets) {
    BERTH_TRY(
        const std::vector<Trace> traces,
        read_set(options, cluster,
                 {.folder = fmt::format("sia/workloads/{}", folder), .kind = name, .files = 3},
                 RunTimes::Trained));
    std::map<std::string, Measured> runs;
    for (const char* policy : {"sia", "pollux", "tiresias-l"}) {
      BERTH_TRY(runs[policy], measure(traces, cluster, spec_for(policy)));
    }
    const Measured& ours = runs["sia"];
    for (const char* policy : {"pollux", "tiresias-l"}) {
      const Measured& other = runs[policy];
      result.figures.push_back({fmt::format("average JCT against {}, {}", policy, name),
                                "30 to 93 % lower",
                                fmt::format("{} ({} against {})", below(ours.jct, other.jct),
                                            hours(ours.jct), hours(other.jct)),
                                ""});
      result.figures.push_back(
          {fmt::format("p99 of JCT, makespan, GPU hours against {}, {}", policy, name),
           "28 to 95 % lower; GPU hours 12 to 60 % lower",
           fmt::format("{}; {}; {}", below(ours.p99, other.p99),
                       below(ours.makespan, other.makespan),
                       below(ours.gpu_hours, other.gpu_hours)),
           ""});
      least = std::min(least, other.jct / ours.jct);
      most = std::max(most, other.jct / ours.jct);
    }
  }
  result.headline = {
      "JCT 30 to 93 % lower",
      fmt::format("{:.0f} to {:.0f} % lower", 100 * (1 - 1 / least), 100 * (1 - 1 / most)),
      judged(least, 1 / (1 - 0.3))};
  result.notes.push_back(
      "The workloads have no run times: ours are those of the jobs' own sizes and batches by the "
      "catalogue's throughputs and noise scales. The paper's Pollux sees device types only by a "
      "rule of its authors; ours gives each job to the type with the fewest jobs per GPU.");
  return result;
}

}  // namespace berth
