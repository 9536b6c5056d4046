// What training code says, for those who decide; absent where nothing listens.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/job_spec.h"
#include "perf/terms.h"
#include "perf/training.h"
#include "training/message.h"

namespace berth {

class TrainingBook {
 public:
  virtual ~TrainingBook() = default;
  [[nodiscard]] virtual std::optional<TrainingReport> report(JobNumber job) const = 0;
  /// Appends the loss after each whole epoch from `first` (counted from 0 = untrained) on.
  virtual void losses(JobNumber job, std::int64_t first, std::vector<double>& losses) const = 0;
  /// It has said that a checkpoint of its work is written.
  [[nodiscard]] virtual bool has_saved(JobNumber job) const = 0;
  /// It is connected: what it is asked it can hear.
  [[nodiscard]] virtual bool is_listening(JobNumber) const { return false; }
  /// And has said that it can go on with other devices.
  [[nodiscard]] virtual bool can_resize(JobNumber) const { return false; }
  virtual void ask_resize(JobNumber, const ResizeAsk&) {}
  virtual void ask_checkpoint(JobNumber, double, AfterCheckpoint) {}
  /// Terms that the code itself must follow.
  virtual void tell(JobNumber job, const Terms& terms) = 0;
};

}  // namespace berth
