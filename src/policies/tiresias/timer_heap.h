// Timers of jobs in a heap, which allocates nothing once it is warm. A job's timers are cancelled
// together; cancelled ones are dropped when they surface, so that cancelling costs nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "base/time.h"

namespace berth::tiresias {

class TimerHeap {
 public:
  void begin(std::size_t jobs) { generation_.resize(jobs); }
  void set(JobId job, Time at) {
    timers_.push_back({at, job, generation_[job]});
    std::ranges::push_heap(timers_, std::ranges::greater{});
  }
  void cancel(JobId job) noexcept { ++generation_[job]; }
  /// Takes off what is due; each job once, by JobId.
  void collect_due(Time now, std::vector<JobId>& due) {
    due.clear();
    for (; next() <= now; drop_first()) due.push_back(timers_.front().job);
    std::ranges::sort(due);
    due.erase(std::unique(due.begin(), due.end()), due.end());
  }
  /// kNever: there is none.
  [[nodiscard]] Time next() {
    while (!timers_.empty() && timers_.front().generation != generation_[timers_.front().job])
      drop_first();
    return timers_.empty() ? kNever : timers_.front().at;
  }

 private:
  struct Timer {
    Time at;
    JobId job;
    std::uint32_t generation;
    friend auto operator<=>(const Timer&, const Timer&) = default;
  };
  void drop_first() {
    std::ranges::pop_heap(timers_, std::ranges::greater{});
    timers_.pop_back();
  }
  std::vector<Timer> timers_;  // heap, earliest first
  Column<JobId, std::uint32_t> generation_;
};

}  // namespace berth::tiresias
