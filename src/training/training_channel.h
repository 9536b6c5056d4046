// What those who decide know of training code and can ask of it: reports, losses and phases in,
// requests to resize or save out. The hub implements it; absent where nothing listens.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/job_spec.h"
#include "perf/terms.h"
#include "perf/training.h"
#include "training/message.h"

namespace berth {

/// As far as the code can be believed.
struct MeasuredProgress {
  double iterations = 0;         // done since the training began
  double seconds_ago = 0;        // when that was said
  double per_second = 0;         // since conditions last changed; 0 = not known yet
  double first_seconds_ago = 0;  // when the attempt said its first word
  double batch = 0;              // samples per iteration and worker; 0 = not said
};

class TrainingChannel {
 public:
  virtual ~TrainingChannel() = default;
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
  /// What it does, as it says; training until it says otherwise.
  [[nodiscard]] virtual Phase phase(JobNumber) const { return Phase::Training; }
  /// Jobs that came to another phase since the last call.
  [[nodiscard]] virtual std::vector<std::pair<JobNumber, Phase>> take_phases() { return {}; }
  /// Terms that the code itself must follow.
  virtual void tell(JobNumber job, const Terms& terms) = 0;

  /// Nothing: it has said nothing since it last started, or nothing that could be.
  [[nodiscard]] virtual std::optional<MeasuredProgress> progress(JobNumber) const {
    return std::nullopt;
  }
  /// Other devices, neighbours or terms: its pace so far says nothing any more.
  virtual void conditions_changed(JobNumber) {}
  /// Appends jobs whose progress is not what what was said before leads to expect.
  virtual void take_progressed(std::vector<JobNumber>&) {}
};

}  // namespace berth
