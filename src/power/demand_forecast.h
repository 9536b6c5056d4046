// How many nodes will be in demand over the next hours, from what was seen so far: boosted trees
// over the calendar and earlier demand, trained anew every week on the last eight; before there are
// two weeks of it, half of now and half of a week ago. A forecast uses nothing that came after the
// moment it was made.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "solve/gbdt.h"

namespace berth {

class DemandForecast {
 public:
  static constexpr std::int64_t kTicksPerHour = 6;
  static constexpr std::int64_t kTicksPerDay = 24 * kTicksPerHour;
  static constexpr std::int64_t kTicksPerWeek = 7 * kTicksPerDay;
  enum class Method : std::uint8_t { Naive, Trees };

  explicit DemandForecast(Method method) : method_(method) {}

  /// Demand of the next tick of ten minutes.
  void add(double used);
  /// Fills `forecast` for the tick added last and the ones after it.
  void predict(std::span<double> forecast) const;
  /// Symmetric error 2 mean(|p - y| / (|p| + |y|)) of forecasts one hour ahead so far.
  [[nodiscard]] std::optional<double> error() const noexcept;

 private:
  static constexpr std::size_t kFeatures = 10;
  using Row = std::array<double, kFeatures>;
  void train();
  [[nodiscard]] static Row features(std::span<const double> series, std::int64_t tick);
  [[nodiscard]] double naive(std::int64_t tick) const noexcept;

  Method method_;
  std::vector<double> used_;  // by tick
  std::optional<Gbdt> model_;
  std::vector<double> hour_ahead_;  // forecast for tick i made an hour before
  double error_sum_ = 0;
  std::int64_t errors_ = 0;
};

}  // namespace berth
