// What running jobs say of their own speed, for a tuner that would otherwise go by the profile of
// their model. Live only: a simulated job says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"

namespace berth {

class MeasuredSpeeds {
 public:
  virtual ~MeasuredSpeeds() = default;
  /// Jobs of which more is known than when last asked.
  virtual void take_changed(std::vector<JobId>& jobs) = 0;
  /// Fills f at 0, 1 … `most` cores per worker, relative to having enough; false: not known (yet).
  [[nodiscard]] virtual bool speeds(JobId job, std::int32_t most, std::vector<double>& f) = 0;
  /// Cores per worker, at most `most`, at which its speed should be measured next; nothing: it says
  /// nothing, or there is nothing left to learn.
  [[nodiscard]] virtual std::optional<std::int32_t> probe(JobId job, std::int32_t most) = 0;
};

}  // namespace berth
