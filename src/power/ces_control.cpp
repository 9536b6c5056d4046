#include "power/ces_control.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace berth {

namespace {
double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
}  // namespace

std::int32_t CesControl::with_buffer(double used) const noexcept {
  return std::min(total_, static_cast<std::int32_t>(std::ceil(used)) + rule_.buffer);
}

void CesControl::set_total(std::int32_t total) {
  total_ = total;
  active_ = std::min(active_, total);
}

std::int32_t CesControl::wake(double used) {
  if (active_ >= used || active_ >= total_) return active_;
  // Nodes were switched off too early: none follow for a while, or they would go to and fro.
  active_ = with_buffer(used);
  hold_ = tick_ + rule_.keep;
  return active_;
}

bool CesControl::may_sleep(double used, std::span<const double> forecast) const noexcept {
  const auto history = static_cast<std::size_t>(rule_.history);
  const auto future = static_cast<std::size_t>(rule_.future);
  if (used_.size() < history || forecast.size() < 2 * future || tick_ < hold_) return false;
  const double recent = mean(std::span(used_).last(history));
  const double soon = mean(forecast.first(future));
  const double later = mean(forecast.first(2 * future));
  return recent - used >= rule_.fallen && used - soon >= rule_.forecast_below && !(soon < later) &&
         active_ - with_buffer(used) >= rule_.least_step;
}

std::int32_t CesControl::tick(double used, std::span<const double> forecast) {
  if (tick_ < rule_.warm_up) {
    active_ = with_buffer(used);
  } else {
    wake(used);
    if (may_sleep(used, forecast)) active_ = with_buffer(used);
  }
  used_.push_back(used);
  ++tick_;
  return active_;
}

}  // namespace berth
