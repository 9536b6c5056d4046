// Rules of the cluster side for studies, as pure functions: what a deadline still allows, how many
// GPUs each trial of a study gets, and how large the debug pool is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace berth::hpo {

// --- deadlines (HyperSched) ---

/// A new trial is worth starting if it can reach the second rung.
[[nodiscard]] constexpr bool may_explore(double seconds_left, double seconds_per_epoch,
                                         double second_rung_epochs) noexcept {
  return seconds_left >= second_rung_epochs * seconds_per_epoch;
}
/// A trial goes on to a rung only if it gets there.
[[nodiscard]] constexpr bool may_promote(double seconds_left, double seconds_per_epoch,
                                         double cost_epochs) noexcept {
  return seconds_left >= cost_epochs * seconds_per_epoch;
}
inline constexpr double kLeaderGain = 1.1;
/// The leader takes freed GPUs while that speeds it up by more than a tenth.
[[nodiscard]] constexpr bool should_grow(double rate_now, double rate_then) noexcept {
  return rate_then > kLeaderGain * rate_now;
}

// --- GPUs of a study among its trials (Fluid) ---

/// With a GPU for each, whole ones, one at a time to the largest work per GPU (ties: the earlier
/// one). Otherwise parts of a GPU by work, none above 1. Work is above zero.
[[nodiscard]] std::vector<double> trial_shares(std::span<const double> work, std::int32_t gpus);

// --- debug pool ---

struct DebugPoolSize {
  std::size_t first = 1;  // nodes at the beginning
  std::size_t least = 1;
  std::size_t most = 1;
};
/// 5 %, 2 % and 10 % of the nodes, rounded up.
[[nodiscard]] constexpr DebugPoolSize debug_pool_size(std::size_t nodes) noexcept {
  const auto part = [&](std::size_t percent) { return (nodes * percent + 99) / 100; };
  return {part(5), part(2), part(10)};
}

enum class PoolChange : std::uint8_t { Stay, Grow, Shrink };
inline constexpr std::size_t kManyDebugJobs = 10;
inline constexpr std::size_t kFewDebugJobs = 3;
/// Once a minute: a node more if more than ten wait, one less if fewer than three do and one is
/// idle.
[[nodiscard]] constexpr PoolChange debug_pool_change(const DebugPoolSize& size, std::size_t nodes,
                                                     std::size_t waiting,
                                                     bool has_idle_node) noexcept {
  if (waiting > kManyDebugJobs && nodes < size.most) return PoolChange::Grow;
  if (waiting < kFewDebugJobs && has_idle_node && nodes > size.least) return PoolChange::Shrink;
  return PoolChange::Stay;
}

}  // namespace berth::hpo
