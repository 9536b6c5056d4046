// Where a gang goes at a given strictness of locality, as Philly relaxes it while a job waits:
//
//   0  the fewest servers that could hold it, in one rack (up to 8 GPUs: one server)
//   1  up to twice as many, in one rack
//   2  any servers of one rack
//   3  any servers
//
// Racks and inside them servers with most free devices come first, so that locality is likely to be
// found; the gang is split evenly over the servers if each has room, otherwise they are filled in
// that order. A single device comes from the fullest server that has one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cluster_state.h"
#include "model/trace.h"

namespace berth::philly {

inline constexpr std::int32_t kLevels = 4;

/// False: not at this level now. Servers in `avoided` are as good as full. O(racks log racks +
/// servers of the racks looked at).
[[nodiscard]] bool place_at_level(const ClusterState& state, const Shape& shape, PoolId pool,
                                  std::int32_t level, std::vector<Slice>& slices,
                                  std::span<const NodeId> avoided = {});

/// Relax only if the time lost by running further apart is less than the wait for not having to:
/// `slower` is how many times longer the job takes at the next level.
[[nodiscard]] constexpr bool worth_relaxing(double seconds_left, double slower,
                                            double expected_wait) noexcept {
  return seconds_left * (slower - 1) < expected_wait;
}

/// What the user got wrong fails again; what the cluster did may not happen twice. Of what is not
/// known nothing can be expected.
[[nodiscard]] constexpr bool may_retry(FailureKind kind, std::uint32_t attempts,
                                       std::uint32_t max_retries) noexcept {
  return kind == FailureKind::Infrastructure && attempts <= max_retries;
}

}  // namespace berth::philly
