// Muri's headline on the traces its authors published with their simulator: 64 GPUs, stage times of
// each job's model and size from the trace itself, the measured cost of sharing.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "lab/reproduce/muri_workload.h"
#include "lab/reproduction.h"
#include "run/run.h"

namespace berth {

Result<Reproduced> reproduce_muri(const ReproduceOptions& options);

namespace {

Result<Summary> run_policy(const MuriWorkload& workload, const Cluster& cluster,
                           const std::string& policy, std::uint64_t seed) {
  RunSpec spec;
  spec.policy = policy;
  spec.seed = seed;
  spec.profiles = workload.profiles;
  BERTH_TRY(Run planned, make_run(workload.trace, cluster, spec));
  BERTH_TRY(const RunData run, planned.run());
  return run.summary;
}

struct Pair {
  std::string ours;
  std::string other;
  std::string published;
};

std::string against(const Summary& ours, const Summary& other) {
  return fmt::format("{:.2f} x average JCT, {:.2f} x makespan",
                     other.avg_jct.value_or(0) / ours.avg_jct.value_or(1),
                     other.makespan.value_or(0) / ours.makespan.value_or(1));
}

}  // namespace

Result<Reproduced> reproduce_muri(const ReproduceOptions& options) {
  BERTH_TRY(const Cluster cluster, parse_cluster_short("8x8:v100"));
  const std::vector<Pair> pairs{
      {"muri-s", "srsf", "up to 3.6 x JCT, 1.6 x makespan over all"},
      {"muri-s", "srtf", "up to 3.6 x JCT, 1.6 x makespan over all"},
      {"muri-l", "tiresias-l", "up to 3.6 x JCT, 1.6 x makespan over all"}};
  std::vector<std::string> traces{"trace1", "trace2", "trace3"};
  if (options.quick) traces.resize(1);

  Reproduced result;
  result.setting =
      "8 x 8 V100, the simulator traces of the authors, stage times by model and size from the "
      "trace, "
      "sharing cost 1.3, 1.5, 1.37, no restart cost, grouping every 6 min";
  double best = 0;
  for (const std::string& name : traces) {
    BERTH_TRY(const MuriWorkload workload,
              read_muri_workload(fmt::format("{}/muri/simulator/{}.csv", options.data, name)));
    std::map<std::string, Summary> done;
    for (const Pair& pair : pairs) {
      for (const std::string& policy : {pair.ours, pair.other}) {
        // A policy is in several pairs: run once.
        if (done.contains(policy)) continue;
        BERTH_TRY(const Summary summary, run_policy(workload, cluster, policy, options.seed));
        done.emplace(policy, summary);
      }
      result.figures.push_back(
          {.what = fmt::format("{}: {} against {}", name, pair.ours, pair.other),
           .published = pair.published,
           .ours = against(done.at(pair.ours), done.at(pair.other)),
           .why = ""});
      best = std::max(best, *done.at(pair.other).avg_jct / *done.at(pair.ours).avg_jct);
    }
  }
  result.headline = {"JCT up to 3.6 x shorter", fmt::format("up to {:.2f} x", best),
                     judged(best, 3.6)};
  return result;
}

}  // namespace berth
