// The 120 jobs of the Shockwave study that ran on 32 real GPUs, replayed under the policies we
// have: completion times against the physical run, beside those of the authors' own simulator.
#include <array>
#include <map>

#include <fmt/format.h>

#include "lab/fit/table.h"
#include "lab/reproduce/replay_error.h"
#include "lab/reproduction.h"
#include "run/run.h"
#include "trace/reader.h"

namespace berth {

Result<Reproduced> reproduce_shockwave(const ReproduceOptions& options);

namespace {

constexpr std::string_view kTrace =
    "/shockwave/120_0.2_5_100_40_25_0-0.5-0.5_0.6-0.3-0.09-0.01_multigpu_dynamic.trace";

using Times = std::vector<double>;              // completion times in the order of the trace
using Measured = std::map<std::string, Times>;  // by "policy kind"

Result<Measured> read_measured(const std::string& path) {
  BERTH_TRY(const Table table, Table::load(path));
  Measured measured;
  for (std::size_t row = 0; row < table.size(); ++row) {
    const auto jct = table.number(row, "jct_s");
    if (!jct || *jct <= 0) return fail(fmt::format("{}: needs jct_s", table.place(row, 0)));
    measured[fmt::format("{} {}", table.text(row, "policy"), table.text(row, "kind"))].push_back(
        *jct);
  }
  return measured;
}

/// Rows of a trace are by submit time; the measured lists are in the order of the file, whose ids
/// count its rows.
Result<Times> replay(const Trace& trace, const Cluster& cluster, const RunSpec& spec) {
  BERTH_TRY(Run planned, make_run(trace, cluster, spec));
  BERTH_TRY(const RunData run, planned.run());
  Times times(trace.jobs.size());
  for (const JobOutcome& job : run.jobs.rows) {
    const std::string_view id = run.jobs.names.text(job.id);  // "row-7"
    const auto row = finite_number(id.substr(id.find('-') + 1));
    if (!row || *row < 1 || *row > static_cast<double>(times.size()) || !job.finish)
      return fail("shockwave: a job without a row or an end");
    times[static_cast<std::size_t>(*row) - 1] = to_seconds(job.jct());
  }
  return times;
}

struct Contender {
  std::string theirs;
  std::string ours;
};
const std::array<Contender, 2> kContenders{
    {{"max_min_fairness", "gavel-las"}, {"finish_time_fairness", "gavel-ftf"}}};
constexpr std::array<std::int64_t, 3> kStartSeconds{20, 10, 0};  // the first for the headline

RunSpec spec_for(const std::string& policy, std::int64_t start_seconds) {
  RunSpec spec;
  spec.policy = policy;
  spec.settings = {{"round", "120"}};
  const Duration cost = std::chrono::seconds{start_seconds};
  // A start, a resume and a move all load the model again.
  spec.sim.costs = {.start = cost, .preempt = {}, .resume = cost, .migrate = cost};
  return spec;
}

}  // namespace

Result<Reproduced> reproduce_shockwave(const ReproduceOptions& options) {
  BERTH_TRY(const Trace trace, read_trace(options.data + std::string(kTrace)));
  BERTH_TRY(const Measured measured,
            read_measured(options.data + "/shockwave/physical_vs_simulation_jobs.csv"));
  BERTH_TRY(const Cluster cluster, parse_cluster_short("8x4:v100"));
  Reproduced result;
  result.setting =
      "8 x 4 V100, the 120 jobs that ran on 32 real GPUs, run times as the trace gives them, "
      "rounds "
      "of 2 min; published: the authors' own simulator against their physical run";
  for (const Contender& one : kContenders) {
    const auto physical = measured.find(one.theirs + " physical");
    const auto simulated = measured.find(one.theirs + " simulation");
    if (physical == measured.end() || simulated == measured.end() ||
        physical->second.size() != trace.jobs.size() ||
        simulated->second.size() != trace.jobs.size())
      return fail(fmt::format("shockwave: the measured runs lack {}", one.theirs));
    const ReplayError theirs = replay_error(simulated->second, physical->second);
    for (const std::int64_t seconds : kStartSeconds) {
      BERTH_TRY(const Times times, replay(trace, cluster, spec_for(one.ours, seconds)));
      const ReplayError ours = replay_error(times, physical->second);
      result.figures.push_back(
          {.what = fmt::format("{} as {}, a start costs {} s", one.theirs, one.ours, seconds),
           .published = as_text(theirs),
           .ours = as_text(ours),
           .why = ""});
      if (seconds != kStartSeconds.front()) continue;
      const std::string_view comma = result.headline.ours.empty() ? "" : "; ";
      result.headline.published += fmt::format("{}{}", comma, as_text(theirs));
      result.headline.ours += fmt::format("{}{} {}", comma, one.ours, as_text(ours));
    }
  }
  result.notes = {
      "What a start costs is not in the data; 20 s is what Gavel's simulator charges (recalled, "
      "not looked up). 0 and 20 s were tried first, 10 s was added. Jobs change their batch while "
      "they run (accordion, gns); the replay knows only the run time that results. AlloX is "
      "not here; Shockwave itself came later and was not replayed.",
      "The published summary gives finish_time_fairness a physical makespan of 27,841 s; its own "
      "list of jobs ends at 31,426 s. The other three agree within 70 s."};
  result.notes.emplace_back(
      "20 s was put first with the results for 0 and 20 s in view: the agreement of the average "
      "is no evidence for it. Also tried, starts free: las for max_min_fairness (average -6.4 "
      "%, per job 40 %, rank 0.800), ftf-fractional (-11.9 %, 21 %, 0.946) and themis (-0.1 %, "
      "20 %, 0.916) for finish_time_fairness, and four policies in the place of AlloX, the "
      "nearest fifo (+9.9 %, 22 %, 0.932).");
  return result;
}

}  // namespace berth
