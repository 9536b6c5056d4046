// At most one moment per job: when it is to be looked at, when its lease ends, when its patience
// does. Who is due is answered in the order of the moments, then of the jobs.
#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/time.h"

namespace berth {

class JobTimers {
 public:
  /// Replaces what was set for the job.
  void set(JobId job, Time at) {
    drop(job);
    if (job.value >= at_.size())
      at_.resize(std::max<std::size_t>(job.value + 1, at_.size() * 2), kNever);
    at_[job] = at;
    order_.emplace(at, job);
  }
  /// Nothing happens if none is set.
  void drop(JobId job) {
    if (!is_set(job)) return;
    order_.erase({at_[job], job});
    at_[job] = kNever;
  }
  [[nodiscard]] bool is_set(JobId job) const noexcept {
    return job.value < at_.size() && at_[job] != kNever;
  }
  /// Those whose moment has come, which stay set.
  [[nodiscard]] std::vector<JobId> due(Time now) const {
    std::vector<JobId> jobs;
    for (const auto& [at, job] : order_) {
      if (at > now) break;
      jobs.push_back(job);
    }
    return jobs;
  }
  [[nodiscard]] bool empty() const noexcept { return order_.empty(); }
  /// The first moment, past ones included; kNever if none is set.
  [[nodiscard]] Time next() const noexcept {
    return order_.empty() ? kNever : order_.begin()->first;
  }
  /// Whose moment is the first; some moment is set.
  [[nodiscard]] JobId first() const noexcept { return order_.begin()->second; }
  /// The first moment that is still to come; kNever if there is none.
  [[nodiscard]] Time next_after(Time now) const noexcept {
    const auto later = order_.lower_bound({now + Duration{1}, JobId{}});
    return later == order_.end() ? kNever : later->first;
  }

 private:
  std::set<std::pair<Time, JobId>> order_;
  Column<JobId, Time> at_;  // kNever: not set
};

}  // namespace berth
