// How long a job still needs with so many GPUs so far apart, as its app sees it: from the estimate
// of its run time and from the profile of its model, or from slowdowns by class where nothing is
// known of the model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/view.h"
#include "perf/locality.h"
#include "policies/themis/fairness.h"

namespace berth::themis {

/// Believed: as the rate model says. ByClass: 1 / 1.2 / 1.6 / 2.2 on a slot, a server, a rack, and
/// beyond for models that need their GPUs close together, 1 / 1 / 1.1 / 1.2 for the others.
enum class Slowdown : std::uint8_t { Believed, ByClass };

/// Of the class that the label stands for.
[[nodiscard]] double class_slowdown(LocalityLabel label, Level level) noexcept;

/// Rate against the run time that is estimated.
[[nodiscard]] double job_rate(const View& view, JobId job, PoolId pool, std::int32_t gpus,
                              Level level, Slowdown slowdown);

/// Does it matter how far apart GPUs are?
[[nodiscard]] bool distance_counts(const View& view, Slowdown slowdown);

class ViewedTimes final : public JobTimes {
 public:
  struct Row {
    JobId job;
    PoolId pool;
    double left = 0;     // seconds at the rate 1
    double overrun = 0;  // not 0: its estimate is used up, and it is taken to need so long
    std::optional<Level> level = {};  // of the GPUs it would have; none: as close as can be
  };
  ViewedTimes(const View& view, Slowdown slowdown, std::vector<Row> rows)
      : view_(&view), slowdown_(slowdown), rows_(std::move(rows)) {}
  [[nodiscard]] double seconds(std::size_t job, std::int32_t gpus) const override;
  void set_level(std::size_t job, Level level) { rows_[job].level = level; }

 private:
  const View* view_;  // for one pass
  Slowdown slowdown_;
  std::vector<Row> rows_;
};

}  // namespace berth::themis
