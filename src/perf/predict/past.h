// Jobs that were over before a run begins, from a history file: what predictors know at time zero.
// The past is lived through once, submits and ends in the order of their times, so that nothing is
// learnt from a job that had not ended. Immutable; any number of runs may share one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "perf/estimator.h"

namespace berth {

/// Whether the times of the history and of the run can be compared: one file, or two calendars.
/// Without, every job of the history counts as over.
enum class Clocks : std::uint8_t { Apart, Same };

class Past {
 public:
  /// A job is taken to have ended `duration` after its submit: histories do not say how long it
  /// waited. On the same clock jobs that ended after the first submit of the run are left out: they
  /// are its future. The names of the history become names of the run.
  Past(const Trace& history, Trace& run, Clocks clocks);

  [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }
  [[nodiscard]] std::size_t left_out() const noexcept { return left_out_; }
  void teach(Estimator& estimator) const;

 private:
  std::vector<TraceJob> jobs_;  // submit times on the run's clock
  std::size_t left_out_ = 0;
};

/// Learns the past when it is told of the run, before it is asked.
[[nodiscard]] std::unique_ptr<Estimator> with_past(std::unique_ptr<Estimator> estimator,
                                                   std::shared_ptr<const Past> past);

}  // namespace berth
