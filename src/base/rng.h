// The one random generator of the project: xoshiro256** seeded by splitmix64, with our own
// distributions, because those of the standard library differ between implementations. Same seed,
// same numbers, on every machine. Not for secrets.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace berth {

class Rng {
 public:
  explicit Rng(std::uint64_t seed = 1) noexcept;
  /// An independent stream for a named purpose, so that one knob does not shift the draws of
  /// another.
  [[nodiscard]] Rng fork(std::string_view purpose) const noexcept;

  [[nodiscard]] std::uint64_t next() noexcept;
  [[nodiscard]] std::uint64_t below(
      std::uint64_t limit) noexcept;        // uniform in [0, limit), limit > 0
  [[nodiscard]] double uniform() noexcept;  // [0, 1)
  [[nodiscard]] double exponential(double mean) noexcept;
  [[nodiscard]] double normal() noexcept;  // mean 0, deviation 1
  [[nodiscard]] double lognormal(double mu, double sigma) noexcept;
  /// Index drawn with probability proportional to its weight; weights are non-negative, sum > 0.
  [[nodiscard]] std::size_t weighted(std::span<const double> weights) noexcept;

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace berth
