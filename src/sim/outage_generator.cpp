#include "sim/outage_generator.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/rng.h"

namespace berth {

Time outage_horizon(const Trace& trace, const Cluster& cluster) {
  if (trace.jobs.empty()) return kTimeZero;
  double gpu_seconds = 0;
  Duration longest{};
  for (const TraceJob& job : trace.jobs) {
    gpu_seconds += to_seconds(job.duration) * job.gpus;
    longest = std::max(longest, job.duration);
  }
  // A generous guess of when the last job ends: twice the time a fully packed cluster would need.
  // Outages behind it would never be seen.
  const double packed = 2 * gpu_seconds / static_cast<double>(cluster.total_gpus());
  return trace.jobs.back().submit + longest +
         seconds_to_duration(std::min(packed, kMaxInputSeconds));
}

Result<std::vector<NodeOutage>> draw_outages(const Cluster& cluster, const RandomOutages& random,
                                             Time horizon, std::uint64_t seed) {
  std::vector<NodeOutage> outages;
  if (random.mtbf <= Duration::zero()) return outages;
  const double per_node = to_seconds(horizon) / to_seconds(random.mtbf + random.repair);
  // Refused before anything is drawn: a tiny --mtbf would fill the memory.
  if (per_node * static_cast<double>(cluster.nodes.size()) > static_cast<double>(kMaxOutages) / 2) {
    return fail(fmt::format(
        "--mtbf: about {:.0f} outages in this trace (the limit is {}; give a longer time)",
        per_node * static_cast<double>(cluster.nodes.size()), kMaxOutages / 2));
  }
  Rng rng = Rng{seed}.fork("outages");
  const Duration tick{1};
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    // A node is drawn up to the horizon before the next one begins: adding nodes at the end of a
    // cluster does not change the outages of those before them.
    Time now{};
    for (;;) {
      const Time down =
          now + std::max(tick, seconds_to_duration_up(rng.exponential(to_seconds(random.mtbf))));
      if (down >= horizon) break;
      const Time up =
          down + std::max(tick, seconds_to_duration_up(rng.exponential(to_seconds(random.repair))));
      outages.push_back({NodeId{i}, down, up});
      now = up;
    }
  }
  return outages;
}

}  // namespace berth
