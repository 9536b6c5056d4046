// When runs of jobs arrive: hour of day, day of week and random swings of days and hours, over a
// span of time that begins on a Monday at midnight. Hours are stratified by the number of jobs,
// separately for short and long runs, because a few bursts of hundreds of jobs would otherwise make
// the day's profile a lottery.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/rng.h"
#include "trace/generator_tables.h"

namespace berth {

/// A run of like submissions while a trace is being made.
struct DraftRun {
  std::size_t cell = 0;
  std::size_t length = 1;
  double seconds = 0;  // from its first to its last submission
};

class Calendar {
 public:
  Calendar(const SourceTable& source, double amplitude, double span_seconds, Rng rng);
  /// An instant in [0, span] for each run.
  [[nodiscard]] std::vector<double> place(std::span<const DraftRun> runs, Rng rng) const;

 private:
  using HourShares = std::array<double, 24>;
  struct Placing {
    std::vector<double>& instants;
    Rng& rng;
  };
  /// Runs of similar length, into hours in proportion to the jobs still `wanted` there.
  void place_group(std::span<const std::size_t> group, std::span<const DraftRun> runs,
                   HourShares& wanted, Placing placing) const;
  [[nodiscard]] double instant_in(std::size_t hour, Rng& rng) const;
  [[nodiscard]] double covered(
      std::size_t hour) const noexcept;  // part of the last day's hour inside the span

  double last_day_seconds_;                       // how much of the last day lies inside the span
  std::array<std::vector<double>, 24> day_sums_;  // by hour of day: cumulative weights of the days
  HourShares hour_shares_{};                      // of all jobs
};

}  // namespace berth
