#include "power/demand_forecast.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace berth {

namespace {

constexpr std::int64_t kLag = 3 * DemandForecast::kTicksPerHour;
constexpr std::int64_t kShift = DemandForecast::kTicksPerHour;
constexpr std::int64_t kFirstRow = kLag + 1;
constexpr std::int64_t kTrainingWeeks = 8;

struct Spread {
  double mean = 0, median = 0, deviation = 0;
};

Spread spread_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const auto count = static_cast<double>(sorted.size());
  Spread spread;
  spread.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  spread.median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
  double squares = 0;
  for (const double value : sorted) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / count);
  return spread;
}

}  // namespace

/// The first tick is Monday midnight of nowhere: only the rhythm of a day and a week counts.
/// `series` holds the demand of the kLag + 1 ticks before this one, at least.
DemandForecast::Row DemandForecast::features(std::span<const double> series, std::int64_t tick) {
  const auto ago = [&](std::int64_t ticks) {
    return series[series.size() - static_cast<std::size_t>(ticks)];
  };
  const auto window = [&](std::size_t length) {
    return spread_of(series.first(series.size() - kShift + 1).last(length));
  };
  const Spread half_hour = window(3);
  const Spread hour = window(6);
  return {static_cast<double>(tick % kTicksPerDay / kTicksPerHour),
          static_cast<double>(tick % kTicksPerHour),
          static_cast<double>(tick % kTicksPerWeek / kTicksPerDay),
          0.5 * ago(kLag) + 0.25 * (ago(kLag + 1) + ago(kLag - 1)),
          half_hour.mean,
          half_hour.median,
          half_hour.deviation,
          hour.mean,
          hour.median,
          hour.deviation};
}

double DemandForecast::naive(std::int64_t tick) const noexcept {
  // Weeks are alike, but a cluster also stays as busy as it is.
  const double now = used_.back();
  const std::int64_t week_ago = tick - kTicksPerWeek;
  if (week_ago < 0) return now;
  return 0.5 * now + 0.5 * used_[static_cast<std::size_t>(week_ago)];
}

void DemandForecast::train() {
  const auto end = static_cast<std::int64_t>(used_.size());
  const std::int64_t begin = std::max(kFirstRow, end - kTrainingWeeks * kTicksPerWeek);
  std::vector<double> rows;
  std::vector<double> targets;
  for (std::int64_t tick = begin; tick < end; ++tick) {
    const Row row = features(std::span(used_).first(static_cast<std::size_t>(tick)), tick);
    rows.insert(rows.end(), row.begin(), row.end());
    targets.push_back(used_[static_cast<std::size_t>(tick)]);
  }
  // A fifth is held back, and boosting stops when it gets worse there.
  model_ = Gbdt::fit(rows, kFeatures, targets, {.held_back = 0.2});
}

void DemandForecast::add(double used) {
  const std::size_t tick = used_.size();
  if (tick >= kTicksPerHour) {
    const double forecast = hour_ahead_[tick];
    const double size = std::abs(forecast) + std::abs(used);
    error_sum_ += size > 0 ? 2 * std::abs(forecast - used) / size : 0;
    ++errors_;
  }
  used_.push_back(used);
  const auto ticks = static_cast<std::int64_t>(used_.size());
  if (method_ == Method::Trees && ticks >= 2 * kTicksPerWeek && ticks % kTicksPerWeek == 0) train();
  std::array<double, kTicksPerHour + 1> next{};
  predict(next);
  hour_ahead_.resize(used_.size() + kTicksPerHour);  // the first hour has no forecast
  hour_ahead_[tick + kTicksPerHour] = next.back();
}

void DemandForecast::predict(std::span<double> forecast) const {
  const auto now = static_cast<std::int64_t>(used_.size()) - 1;
  if (!model_) {
    for (std::size_t h = 0; h < forecast.size(); ++h)
      forecast[h] = naive(now + static_cast<std::int64_t>(h));
    return;
  }
  // What features look back at; goes on with what is predicted.
  std::vector<double> series(used_.end() - (kFirstRow + 1), used_.end() - 1);
  for (std::size_t h = 0; h < forecast.size(); ++h) {
    const std::int64_t tick = now + static_cast<std::int64_t>(h);
    forecast[h] = std::max(0.0, model_->predict(features(series, tick)));
    series.push_back(h == 0 ? used_.back() : forecast[h]);
  }
}

std::optional<double> DemandForecast::error() const noexcept {
  if (errors_ == 0) return std::nullopt;
  return error_sum_ / static_cast<double>(errors_);
}

}  // namespace berth
