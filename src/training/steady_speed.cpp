#include "training/steady_speed.h"

#include <algorithm>

#include "base/check.h"
#include "perf/cpu_design.h"

namespace berth {

namespace {

constexpr std::size_t kFewestSamples = 5;  // a median of fewer would be anybody's guess
constexpr double kLongest = std::chrono::duration<double>(kLongestMeasurement).count();

}  // namespace

double median(std::vector<double> numbers) {
  BERTH_CHECK(!numbers.empty(), "a median is of something");
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  if (numbers.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(numbers.begin(), middle)) / 2;
}

void SteadySpeed::restart() { *this = {}; }

void SteadySpeed::add(double seconds, std::int64_t iterations) {
  if (!has_change_passed_) {
    has_change_passed_ = true;
    return;
  }
  if (warm_up_ < kWarmUpBatches && warm_up_seconds_ < kLongest) {
    warm_up_ += iterations;
    warm_up_seconds_ += seconds * static_cast<double>(iterations);
    return;
  }
  measured_ += iterations;
  measured_seconds_ += seconds * static_cast<double>(iterations);
  samples_.push_back(seconds);
  if (samples_.size() > kWindow) samples_.pop_front();
}

std::optional<double> SteadySpeed::seconds() const {
  const bool is_long = !samples_.empty() && measured_seconds_ >= kLongest;
  const bool is_enough = measured_ >= kMeasuredBatches && samples_.size() >= kFewestSamples;
  if (!is_long && !is_enough) return std::nullopt;
  return median({samples_.begin(), samples_.end()});
}

}  // namespace berth
