// Where cores are as scarce as GPUs: the server on which neither runs out before the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/cluster_state.h"

namespace berth {

struct ServerLoad {
  double used = 0, request = 0, total = 0;
  /// A server that does not describe them has enough of them.
  [[nodiscard]] constexpr double after() const noexcept {
    return total > 0 ? (used + request) / total : 0;
  }
};
/// The larger of both loads once the job is there.
[[nodiscard]] constexpr double load_with(const ServerLoad& cores, const ServerLoad& gpus) noexcept {
  return std::max(cores.after(), gpus.after());
}

/// Of the servers that hold the whole gang the one least loaded then (ties: the lower id). Costs
/// the servers of the pool that have so many free devices.
[[nodiscard]] std::optional<NodeId> most_balanced(const ClusterState& state, const Shape& shape,
                                                  PoolId pool);

}  // namespace berth
