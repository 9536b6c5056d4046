// How many GPUs each job of a pool gets, without an engine: a guarantee for everybody, what is left
// to whom it helps most, and moves where they clearly pay.
//
//   guarantee  the fewest GPUs on which the job is as fast as on what it asked for; given in order
//              of arrival, found by shrinking jobs above theirs where nothing is free
//   growth     the next size to whoever gains most of its wish per GPU, while that size is free
//   moves      from whoever loses least to whoever gains more than 1.1 times as much
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "policies/common/speed_curve.h"

namespace berth::rubick {

inline constexpr std::size_t kNoSize = static_cast<std::size_t>(-1);

/// A job in order of arrival.
struct Demand {
  const SpeedCurve* curve = nullptr;
  double wanted = 1;           // speed it was promised
  std::size_t size = kNoSize;  // index into the curve; kNoSize = it waits
  double restart = 1;  // share of a gain that is left after a restart; 1 = it does not run yet
  bool within_quota = true;

  [[nodiscard]] std::size_t guarantee() const noexcept { return curve->first_reaching(wanted); }
  [[nodiscard]] std::int32_t held() const noexcept {
    return size == kNoSize ? 0 : curve->gpus[size];
  }
  /// Gain of its wish per GPU from one size to the next one.
  [[nodiscard]] double slope(std::size_t from) const noexcept;
  [[nodiscard]] bool can_grow() const noexcept {
    return size != kNoSize && size + 1 < curve->sizes();
  }
  [[nodiscard]] bool can_shrink() const noexcept { return size != kNoSize && size > guarantee(); }
};

/// Strict: nobody is served before a job that came earlier and could not be.
enum class Waiting : std::uint8_t { Strict, Skip };

inline constexpr double kMoveGain = 1.1;

/// Sets the sizes; `free` GPUs are held by none of them. Answers how many are left.
std::int64_t allocate(std::span<Demand> jobs, std::int64_t free, Waiting waiting);

}  // namespace berth::rubick
