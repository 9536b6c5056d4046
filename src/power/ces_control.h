// How many nodes stay on: the rule of Helios' cluster energy saving, one tick at a time. Nodes are
// switched off when demand has fallen, is forecast to stay below, and was not woken for a while;
// they are switched on as soon as demand exceeds what is on. A buffer of idle nodes is always kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth {

struct CesRule {
  std::int32_t history = 3;     // ticks over which demand must have fallen
  std::int32_t future = 18;     // ticks over which it must stay lower
  double fallen = 1;            // nodes below its recent mean, at least
  double forecast_below = 1;    // nodes the forecast lies below demand, at least
  std::int32_t buffer = 6;      // idle nodes kept on
  std::int32_t keep = 12;       // ticks after a wake-up without switching off
  std::int32_t least_step = 1;  // fewer nodes are not worth switching off
  std::int32_t warm_up = 6;     // first ticks: what is needed and the buffer
};

class CesControl {
 public:
  CesControl(std::int32_t total, const CesRule& rule)
      : rule_(rule), total_(total), active_(total) {}

  /// Demand of this tick, and the forecast for it and the 2 * future - 1 ticks after it. Answers
  /// how many nodes are to be on from now on; the first tick counts as 0.
  std::int32_t tick(double used, std::span<const double> forecast);
  /// Between ticks: demand exceeds what is on.
  std::int32_t wake(double used);
  std::int32_t wake_all() { return active_ = total_; }
  /// Nodes fail and are repaired.
  void set_total(std::int32_t total);

  [[nodiscard]] std::int32_t active() const noexcept { return active_; }

 private:
  [[nodiscard]] std::int32_t with_buffer(double used) const noexcept;
  [[nodiscard]] bool may_sleep(double used, std::span<const double> forecast) const noexcept;

  CesRule rule_;
  std::int32_t total_;
  std::int32_t active_;
  std::int64_t tick_ = 0;
  std::int64_t hold_ = 0;  // no switching off before this tick
  std::vector<double> used_;
};

}  // namespace berth
