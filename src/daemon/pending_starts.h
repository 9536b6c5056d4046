// Starts that the engine has decided on and that have not happened: of jobs whose devices are not
// vacant yet, and of sleepers that were granted their devices again. Owns both; when a start may
// happen the supervisor decides.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/attempt_table.h"

namespace berth {

struct PendingStart {
  std::vector<Slice> slices;
  std::int32_t gpus = 0;
  Reason reason = Reason::None;
  std::int32_t cores_milli = 0;
  std::int32_t rate_milli = 1000;
};

class PendingStarts {
 public:
  void put(JobNumber job, PendingStart start) { starts_[job] = std::move(start); }
  void erase(JobNumber job) { starts_.erase(job); }
  [[nodiscard]] bool contains(JobNumber job) const { return starts_.contains(job); }
  [[nodiscard]] const PendingStart* find(JobNumber job) const {
    const auto found = starts_.find(job);
    return found == starts_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::map<JobNumber, PendingStart>& all() noexcept { return starts_; }
  [[nodiscard]] const std::map<JobNumber, PendingStart>& all() const noexcept { return starts_; }
  /// False: it is not about to start.
  bool set_rate(JobNumber job, std::int32_t milli);

  void wake(JobNumber job) { resuming_.insert(job); }
  void let_sleep(JobNumber job) { resuming_.erase(job); }
  /// Granted their devices again, still asleep.
  [[nodiscard]] std::set<JobNumber>& resuming() noexcept { return resuming_; }

  void clear();
  /// Whoever was given one of this attempt's devices.
  [[nodiscard]] std::set<JobNumber> rivals_of(const Attempt& attempt,
                                              const AttemptTable& attempts) const;

 private:
  std::map<JobNumber, PendingStart> starts_;
  std::set<JobNumber> resuming_;
};

}  // namespace berth
