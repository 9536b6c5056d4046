// Static pattern analysis of a class of jobs: how much it loses when its gang is spread, what that
// means for where it may go, and how it gets on with neighbours. Pure functions of the profile and
// the cluster's links; nothing here looks at a running cluster.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/cluster.h"
#include "model/level.h"
#include "perf/profile.h"

namespace berth {

/// sigma per level: how much longer an iteration takes there than over NVLink, as a part of it
/// (0.25 = a quarter longer).
using LocalitySensitivity = std::array<double, kLevels>;

[[nodiscard]] LocalitySensitivity locality_sensitivity(const IterationParams& params, double batch,
                                                       std::int32_t gpus, const Links& links);

/// How close a gang of the class has to be.
enum class LocalityLabel : std::uint8_t { Any, Prefer, Strict };
[[nodiscard]] std::string_view to_string(LocalityLabel label) noexcept;

inline constexpr double kStrictSensitivity = 0.25;
inline constexpr double kPreferSensitivity = 0.05;
/// By what spreading over a rack costs.
[[nodiscard]] LocalityLabel locality_label(const LocalitySensitivity& sensitivity) noexcept;
/// The highest level a job accepts at first: strict a server, prefer a rack, any no limit; never
/// below what so many devices need (`lowest_possible`).
[[nodiscard]] Level first_level(LocalityLabel label, Level lowest_possible) noexcept;

/// When to give up waiting for a level: only if what the rest of the run loses on the next one is
/// less than the wait that is to be expected here. `slowdown_ratio` is slow(next) / slow(now).
[[nodiscard]] constexpr bool should_relax(double seconds_left, double slowdown_ratio,
                                          double expected_wait_seconds) noexcept {
  return seconds_left * (slowdown_ratio - 1) < expected_wait_seconds;
}

}  // namespace berth
