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
#include <vector>

#include "core/cluster_state.h"

namespace berth {

inline constexpr std::int32_t kPhillyLevels = 4;

/// False: not at this level now. O(racks log racks + servers of the racks looked at).
[[nodiscard]] bool place_at_level(const ClusterState& state, const Shape& shape, PoolId pool,
                                  std::int32_t level, std::vector<Slice>& slices);

/// Relax only if the time lost by running further apart is less than the wait for not having to:
/// `slower` is how many times longer the job takes at the next level.
[[nodiscard]] constexpr bool worth_relaxing(double seconds_left, double slower,
                                            double expected_wait) noexcept {
  return seconds_left * (slower - 1) < expected_wait;
}

enum class FailureKind : std::uint8_t { User, Infrastructure };
/// What the user got wrong fails again; what the cluster did may not happen twice.
[[nodiscard]] constexpr bool may_retry(FailureKind kind, std::uint32_t attempts,
                                       std::uint32_t max_retries) noexcept {
  return kind == FailureKind::Infrastructure && attempts <= max_retries;
}

}  // namespace berth
