#include "base/rng.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/digest.h"
#include "base/portable_math.h"

namespace berth {

namespace {
std::uint64_t splitmix(std::uint64_t& x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
}  // namespace

Rng::Rng(std::uint64_t seed) noexcept {
  // xoshiro must not start with an all-zero state; splitmix never gives four zeros, whatever the
  // seed.
  for (auto& word : state_) word = splitmix(seed);
}

// A stream of its own per purpose: drawing more numbers for one purpose does not shift those of
// another, so a run stays comparable when a feature is switched on.
Rng Rng::fork(std::string_view purpose) const noexcept {
  Digest digest;
  for (const auto word : state_) digest.add(word);
  digest.add(purpose);
  return Rng{digest.value()};
}

std::uint64_t Rng::next() noexcept {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Rng::below(std::uint64_t limit) noexcept {
  BERTH_DCHECK(limit > 0, "a draw needs at least one possible value");
  const std::uint64_t threshold = (0 - limit) % limit;  // reject the uneven rest
  for (;;) {
    const std::uint64_t draw = next();
    if (draw >= threshold) return draw % limit;
  }
}

// 53 random bits, as many as a double holds: every value is a multiple of 2^-53 and below 1.
double Rng::uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

// 1 - uniform() is in (0, 1], so the logarithm is finite.
double Rng::exponential(double mean) noexcept { return -mean * portable_log(1.0 - uniform()); }

double Rng::normal() noexcept {  // Box–Muller, one of the pair: no hidden state between calls
  const double u = 1.0 - uniform();
  const double v = uniform();
  return std::sqrt(-2.0 * portable_log(u)) * portable_cos_turns(v);
}

double Rng::lognormal(double mu, double sigma) noexcept {
  return portable_exp(mu + sigma * normal());
}

std::size_t Rng::weighted(std::span<const double> weights) noexcept {
  double total = 0;
  for (const double weight : weights) total += weight;
  double draw = uniform() * total;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    draw -= weights[i];
    if (draw < 0) return i;
  }
  // Rounding can leave a tiny rest after the last weight; it belongs to the last one.
  return weights.size() - 1;
}

}  // namespace berth
