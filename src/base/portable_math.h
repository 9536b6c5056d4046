// exp, log and friends built from +, -, *, / alone. The C library picks different code paths on
// different processors (with and without fused multiply-add), so its results may differ in the last
// bit; these do not, which keeps generated traces and noisy estimates equal on every machine.
// Relative error below 1e-15 over the range we use; not meant for inner loops.
#pragma once

namespace berth {

[[nodiscard]] double portable_exp(double x) noexcept;
[[nodiscard]] double portable_log(double x) noexcept;                      // x > 0
[[nodiscard]] double portable_pow(double base, double exponent) noexcept;  // base > 0
[[nodiscard]] double portable_cos_turns(double turns) noexcept;            // cos(2 * pi * turns)

}  // namespace berth
