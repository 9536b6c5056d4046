// Jobs in queue order (JobId: submit, then id), smallest first. A job that comes back (preempted,
// node lost) finds its old place. Jobs that are over are dropped when they surface, so a
// cancellation costs nothing; the owner pushes a job at most once until it is popped.
#pragma once

#include <algorithm>
#include <vector>

#include "base/id.h"
#include "core/job_table.h"

namespace berth {

class JobHeap {
 public:
  void push(JobId job) {
    jobs_.push_back(job);
    std::ranges::push_heap(jobs_, std::ranges::greater{});
  }
  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  [[nodiscard]] JobId top() const noexcept { return jobs_.front(); }
  /// Takes the first job off and drops what is over behind it, so that top() is alive again.
  JobId pop(const JobTable& table) {
    const JobId job = top();
    drop_top();
    drop_over(table);
    return job;
  }
  /// A job preempted a moment ago still counts as running in the table: only what is over goes.
  void drop_over(const JobTable& table) {
    while (!jobs_.empty() && is_over(table.state[jobs_.front()])) drop_top();
  }

 private:
  void drop_top() {
    std::ranges::pop_heap(jobs_, std::ranges::greater{});
    jobs_.pop_back();
  }
  std::vector<JobId> jobs_;
};

}  // namespace berth
