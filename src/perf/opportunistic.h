// How an opportunistic job lives on what a guaranteed job leaves of a device, after AntMan (OSDI
// 2020): its kernels are held back to a share r of what it would issue, its memory to a limit with
// the rest in host memory. The guaranteed job slows down by
//     max(1, d_guaranteed + x) * (1 + bandwidth_term * x),   x = sum of r * d_opportunistic
// and an opportunistic job runs at
//     r * max(0.02, min(1, (1 - d_guaranteed) / d_opportunistic)) / overflow factor
// of its speed alone. d is the share of the device's compute a job uses alone, 0..1. Pure
// functions.
#pragma once

#include <cstdint>

namespace berth {

struct Interference {
  double bandwidth_term = 0.1;  // 0 = off
  double tolerance = 0.02;      // slowdown a guaranteed job bears
  double least_rate = 0.05;     // r_min; below it a job is paused
  double rate_step = 0.1;       // additive increase
  double rate_cut = 0.5;        // multiplicative decrease
  double pcie_bytes_per_second = 12e9;
};

/// How many times longer an iteration of the guaranteed job takes; x as above.
[[nodiscard]] double guaranteed_slowdown(double guaranteed, double opportunistic_share,
                                         const Interference& model) noexcept;
/// Share of its own speed alone that an opportunistic job has, memory aside.
[[nodiscard]] double opportunistic_speed(double rate, double guaranteed,
                                         double opportunistic) noexcept;

/// How many times longer an iteration takes when `overflow_bytes` of it go to and from the host.
[[nodiscard]] double overflow_factor(double overflow_bytes, double iteration_seconds,
                                     const Interference& model) noexcept;

/// Where the local coordinator settles, which halves the rate while the guaranteed job is too slow
/// and else raises it by a step: the largest multiple of the step that keeps the guaranteed job
/// within tolerance; else the least rate; else zero (paused).
/// `opportunistic` is the sum of d over the opportunistic jobs of the device.
[[nodiscard]] double settled_rate(double guaranteed, double opportunistic,
                                  const Interference& model) noexcept;

}  // namespace berth
