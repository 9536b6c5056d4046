// Should a new job start beside a running one, or wait for it? With A running (T_A of it left,
// alone) and B new (T_B long, alone), the average completion time of the two as a function of the
// moment B starts is piecewise linear and rises first, so its least value is at one of the ends:
// share now, or wait until A is done. Sharing wins strictly or not at all.
#pragma once

#include <cstdint>
#include <optional>

namespace berth::bsbf {

/// How many times longer an iteration of each takes beside the other.
struct SharingSlowdown {
  double running = 1;   // of A
  double newcomer = 1;  // of B
};

/// Average completion time of the two if B waits for A.
[[nodiscard]] constexpr double average_if_waiting(double left_a, double length_b) noexcept {
  return left_a + length_b / 2;
}

/// The same if both share from now on.
[[nodiscard]] constexpr double average_if_sharing(double left_a, double length_b,
                                                  const SharingSlowdown& slowdown) noexcept {
  const double a = slowdown.running * left_a;
  const double b = slowdown.newcomer * length_b;
  if (a <= b) return length_b / 2 + a * (1 - 1 / (2 * slowdown.newcomer));
  return left_a / 2 + b * (1 - 1 / (2 * slowdown.running));
}

/// A tie means wait, also in floating point.
[[nodiscard]] constexpr bool is_better(double sharing, double waiting) noexcept {
  return sharing < waiting * (1 - 1e-9);
}

/// Sharing is better exactly for partners with more than this left. `shared_b` is the length of B
/// with the sub-batch it would use beside A, `alone_b` without gradient accumulation.
[[nodiscard]] constexpr double least_partner_left(double shared_b, double alone_b,
                                                  const SharingSlowdown& slowdown) noexcept {
  const double c = slowdown.running * (1 - 1 / (2 * slowdown.newcomer));
  if (c < 1) {
    const double a_ends_first = (shared_b - alone_b) / (2 - 2 * c);
    if (a_ends_first <= slowdown.newcomer * shared_b / slowdown.running) return a_ends_first;
  }
  return shared_b * (2 * slowdown.newcomer - slowdown.newcomer / slowdown.running) - alone_b;
}

struct PairSetting {
  double sharing = 0;  // average completion times
  double waiting = 0;
  std::int32_t sub_steps = 1;
  [[nodiscard]] double benefit() const noexcept { return waiting - sharing; }
};

/// The fewest sub-batches (1, 2, 4, … up to the batch) with which `fits(sub_batch)` holds; nothing
/// if not even single samples do.
template <class Fits>
[[nodiscard]] std::optional<std::int32_t> fewest_sub_steps(std::int32_t batch, Fits&& fits) {
  for (std::int32_t steps = 1; steps <= batch; steps *= 2) {
    if (fits((batch + steps - 1) / steps)) return steps;
    if (steps > batch / 2) break;
  }
  return std::nullopt;
}

}  // namespace berth::bsbf
