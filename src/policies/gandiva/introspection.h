// The decisions of Gandiva's introspective mode as plain functions: is a packing kept, is a
// migration worth its pause, which moves empty servers, how far a job grows, what a class deserves.
// Nothing is predicted: rates are those measured, in reference seconds per second.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/id.h"
#include "policies/gandiva/servers.h"

namespace berth::gandiva {

/// A rate as it was seen last. What was measured and what is only believed cannot be compared: a
/// belief may be off by any factor, and is when an estimate is.
struct SeenRate {
  double value = 0;  // 0 = never seen
  bool is_measured = false;
  [[nodiscard]] bool is_seen() const noexcept { return value > 0; }
  /// The better of two that can be compared, else the measured one.
  void raise_to(const SeenRate& other) noexcept;
};
[[nodiscard]] inline bool are_alike(const SeenRate& a, const SeenRate& b) noexcept {
  return a.is_measured == b.is_measured;
}

/// How two jobs on the same GPUs get on: the sum of packed over isolated rate. Taking turns scores
/// exactly 1 less the switches.
struct PackedRates {
  double isolated = 1;
  double packed = 0;
};
[[nodiscard]] double packing_score(const PackedRates& a, const PackedRates& b) noexcept;
[[nodiscard]] inline bool keeps_packing(double score) noexcept { return score > 1; }

/// Does what the job gains until `horizon` exceed what it loses while it moves? Seconds.
[[nodiscard]] bool is_worth_moving(double speed_here, double speed_there, double horizon,
                                   double cost) noexcept;

/// A server as defragmentation sees it. Idle servers are not listed.
struct Occupied {
  UnitId server;
  std::int32_t gpus = 0;
  std::int32_t free = 0;
  std::vector<std::pair<std::int32_t, JobId>> movable;  // (GPUs, job), may change server now
};
struct Move {
  JobId job;
  UnitId from;
  UnitId to;
  friend bool operator==(const Move&, const Move&) = default;
};
/// Repeats: from the server with the most free GPUs, its smallest job to the server with the fewest
/// that still fits; ties to the lower id. A server none of whose jobs fits elsewhere is passed
/// over. Ends when no move is left or all servers have less than `threshold` of their GPUs free.
/// Each move makes a fuller server fuller, so it ends; a server that empties stays empty. O(log n)
/// per move.
[[nodiscard]] std::vector<Move> defragment(std::vector<Occupied> servers, double threshold);

enum class GrowStep : std::uint8_t { Double, All };
/// GPUs the job has after growing once on a server with `free` idle GPUs.
[[nodiscard]] std::int32_t grown(std::int32_t current, std::int32_t most, std::int32_t free,
                                 GrowStep step) noexcept;

/// What each class deserves of `gpus`: its share by demand, never more than its demand.
[[nodiscard]] std::map<AffinityClass, std::int64_t> deserved(
    const std::map<AffinityClass, std::int64_t>& demand, std::int64_t gpus);

}  // namespace berth::gandiva
