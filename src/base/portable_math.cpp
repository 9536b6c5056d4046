#include "base/portable_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace berth {

namespace {
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kLog2E = 1.44269504088896338700;
constexpr double kTwoPi = 6.283185307179586476925;
}  // namespace

// Argument reduction: x = k ln 2 + r. ln 2 is split in two so that k * ln 2 is exact in its upper
// part; the rest of the error is far below one unit of the last place.
double portable_exp(double x) noexcept {
  if (x > 709.0) return std::numeric_limits<double>::infinity();
  if (x < -708.0) return 0.0;
  const double k = std::floor(x * kLog2E + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln2 / 2
  double sum = 1.0;
  for (int i = 18; i >= 1; --i) sum = 1.0 + r * sum / i;  // Taylor in Horner form
  return std::ldexp(sum, static_cast<int>(k));
}

double portable_log(double x) noexcept {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  if (mantissa < 0.70710678118654752440) {
    // Keeps the mantissa in [sqrt(1/2), sqrt(2)), where the series below converges fastest.
    mantissa *= 2.0;
    --exponent;
  }
  // ln m = 2 atanh((m - 1) / (m + 1)); |s| <= 0.1716, so the series ends quickly.
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = s * s;
  double sum = 0.0;
  for (int i = 25; i >= 1; i -= 2) sum = sum * square + 1.0 / i;
  const double k = exponent;
  return k * kLn2High + (k * kLn2Low + 2.0 * s * sum);
}

double portable_pow(double base, double exponent) noexcept {
  return portable_exp(exponent * portable_log(base));
}

double portable_cos_turns(double turns) noexcept {
  double t = turns - std::floor(turns);  // [0, 1)
  if (t > 0.5) t = 1.0 - t;              // cos is even about half a turn
  const bool second_quadrant = t > 0.25;
  if (second_quadrant) t = 0.5 - t;  // cos(pi - a) = -cos a
  const double angle = kTwoPi * t;   // [0, pi/2]
  const double square = angle * angle;
  double sum = 1.0;
  for (int i = 26; i >= 2; i -= 2) sum = 1.0 - sum * square / (i * (i - 1));
  return second_quadrant ? -sum : sum;
}

}  // namespace berth
