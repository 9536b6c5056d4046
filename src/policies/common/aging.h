// Priority classes that rise while a job waits: by one each interval since submission, up to a
// largest class. A job's own class may be higher. As age counts from submission, among jobs of one
// priority the order of arrival is always the right order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/params.h"
#include "core/view.h"

namespace berth {

struct Aging {
  Duration interval{};  // zero: no aging
  std::int32_t max_class = 10;

  [[nodiscard]] bool is_on() const noexcept { return interval > Duration::zero(); }
  [[nodiscard]] std::int64_t steps(const View& view, JobId job, Time at) const noexcept {
    return (at - view.jobs.submitted[job]) / interval;
  }
  [[nodiscard]] std::int32_t class_of(const View& view, JobId job, Time at) const noexcept {
    const std::int32_t own = view.request(job).priority;
    if (!is_on() || own >= max_class) return own;
    return static_cast<std::int32_t>(
        std::min<std::int64_t>(max_class, own + steps(view, job, at)));
  }
};

/// By the parameters `aging_interval` and `max_class`.
[[nodiscard]] inline Result<Aging> aging_of(const Params& params) {
  Aging aging;
  BERTH_TRY(aging.interval, params.duration("aging_interval"));
  BERTH_TRY(aging.max_class, params.whole<std::int32_t>("max_class", -1'000'000, 1'000'000));
  return aging;
}

}  // namespace berth
