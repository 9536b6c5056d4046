// How fast jobs were seen to run: alone on their GPUs, packed beside another job, and at best.
// Nothing is predicted; rates are in reference seconds per second.
//
// In a live run a rate is a belief until the job has reported for a while. What was measured and
// what is only believed are never compared: a belief may be off by any factor.
#pragma once

#include <cstdint>

#include "core/view.h"
#include "policies/gandiva/ring.h"

namespace berth::gandiva {

/// A rate as it was seen last.
struct SeenRate {
  double value = 0;  // 0 = never seen
  bool is_measured = false;
  [[nodiscard]] bool is_seen() const noexcept { return value > 0; }
  /// The better of two that can be compared, else the measured one.
  void raise_to(const SeenRate& other) noexcept;
};
[[nodiscard]] inline bool are_alike(const SeenRate& a, const SeenRate& b) noexcept {
  return a.is_measured == b.is_measured;
}
/// As it runs now, whatever its size.
[[nodiscard]] inline SeenRate rate_now(const View& view, JobId job) {
  return {.value = view.jobs.rate[job].value(),
          .is_measured = view.measured_over(job) > Duration::zero()};
}

class Observations {
 public:
  struct Row {
    SeenRate isolated;       // when it last ran alone on its GPUs
    SeenRate packed;         // beside the job it shares them with
    SeenRate best;           // the best seen
    std::int32_t looks = 0;  // at its rate alone on its GPUs, before that was measured
  };
  void begin(const View& view) { rows_.resize(view.jobs.size()); }
  [[nodiscard]] const Row& of(JobId job) const noexcept { return rows_[job]; }
  /// Looks at a unit where nothing has changed in this instant: what changed is not yet measured.
  void watch(const View& view, const Ring& ring);
  void forget_packed(JobId job) { rows_[job].packed = {}; }
  void forget_isolated(JobId job) {
    rows_[job].isolated = {};
    rows_[job].looks = 0;
  }

 private:
  void see_alone(const View& view, JobId job, const SeenRate& rate);

  Column<JobId, Row> rows_;
};

}  // namespace berth::gandiva
