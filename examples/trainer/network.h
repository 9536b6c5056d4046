// One hidden layer, trained by gradient descent. Sums run over samples in their order, whatever the
// micro-batches and whoever computed them, so that gradients are the same to the last bit however a
// batch is split and on how many devices.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainer {

inline constexpr std::size_t kInputs = 8;
inline constexpr std::size_t kHidden = 16;
inline constexpr std::size_t kWeights = kHidden * (kInputs + 1) + kHidden + 1;

struct Sample {
  double input[kInputs];
  double target;
};

/// splitmix64: the same numbers on every machine.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}
inline double unit(std::uint64_t x) { return static_cast<double>(mix(x) >> 11U) * 0x1.0p-53; }

class Network {
 public:
  explicit Network(std::uint64_t seed) : weights(kWeights), gradient_(kWeights) {
    for (std::size_t i = 0; i < kWeights; ++i) weights[i] = unit(seed * 7919 + i) - 0.5;
  }

  using Gradient = std::array<double, kWeights>;

  /// The gradient of one sample's squared error, and that error.
  double gradient_of(const Sample& sample, Gradient& gradient) const {
    double hidden[kHidden];
    const double error = predict(sample, hidden) - sample.target;
    const double* out = weights.data() + kHidden * (kInputs + 1);
    for (std::size_t h = 0; h < kHidden; ++h) {
      gradient[kHidden * (kInputs + 1) + h] = error * hidden[h];
      const double back = error * out[h] * (1 - hidden[h] * hidden[h]);
      double* row = gradient.data() + h * (kInputs + 1);
      for (std::size_t i = 0; i < kInputs; ++i) row[i] = back * sample.input[i];
      row[kInputs] = back;
    }
    gradient[kWeights - 1] = error;
    return error * error;
  }
  void add(const Gradient& gradient) {
    for (std::size_t i = 0; i < kWeights; ++i) gradient_[i] += gradient[i];
  }
  /// One step down the mean gradient of `samples` samples.
  void step(double rate, std::size_t samples) {
    const double scale = rate / static_cast<double>(samples);
    for (std::size_t i = 0; i < kWeights; ++i) {
      weights[i] -= scale * gradient_[i];
      gradient_[i] = 0;
    }
  }
  [[nodiscard]] double error(const Sample& sample) const {
    double hidden[kHidden];
    const double difference = predict(sample, hidden) - sample.target;
    return difference * difference;
  }

  std::vector<double> weights;

 private:
  double predict(const Sample& sample, double* hidden) const {
    double sum = weights[kWeights - 1];
    const double* out = weights.data() + kHidden * (kInputs + 1);
    for (std::size_t h = 0; h < kHidden; ++h) {
      const double* row = weights.data() + h * (kInputs + 1);
      double inner = row[kInputs];
      for (std::size_t i = 0; i < kInputs; ++i) inner += row[i] * sample.input[i];
      hidden[h] = std::tanh(inner);
      sum += out[h] * hidden[h];
    }
    return sum;
  }
  std::vector<double> gradient_;
};

}  // namespace trainer
