// Node outages drawn from a seed: every node fails and is repaired independently, both times
// exponential. Failures are drawn up to a horizon, because a run's end is not known before it has
// run.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/cluster.h"
#include "model/trace.h"
#include "sim/sim_executor.h"

namespace berth {

struct RandomOutages {
  Duration mtbf{};    // mean time a node stays up; zero: nodes never fail
  Duration repair{};  // mean time it stays down
};

inline constexpr std::size_t kMaxOutages = 5'000'000;

/// Up to when outages are drawn: the last submit, plus the longest job, plus twice the time in
/// which the whole cluster could do the trace's work.
[[nodiscard]] Time outage_horizon(const Trace& trace, const Cluster& cluster);
/// By node, then time. An error if the times are so short that more than kMaxOutages would be
/// drawn.
[[nodiscard]] Result<std::vector<NodeOutage>> draw_outages(const Cluster& cluster,
                                                           const RandomOutages& random,
                                                           Time horizon, std::uint64_t seed);

}  // namespace berth
