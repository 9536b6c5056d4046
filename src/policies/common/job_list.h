// Jobs in the order of their ids, which is the order of arrival, in one vector: for lists that are
// walked more often than they change. Finding a job is O(log n), inserting or erasing one O(n)
// moves of four bytes; new jobs come last, where that costs nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/id.h"

namespace berth {

class JobList {
 public:
  /// Nothing happens if it is listed already.
  void insert(JobId job) {
    const auto at = std::ranges::lower_bound(jobs_, job);
    if (at == jobs_.end() || *at != job) jobs_.insert(at, job);
  }
  /// Nothing happens if it is not listed.
  void erase(JobId job) {
    const auto at = std::ranges::lower_bound(jobs_, job);
    if (at != jobs_.end() && *at == job) jobs_.erase(at);
  }
  void erase_at(std::size_t at) { jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(at)); }
  void clear() noexcept { jobs_.clear(); }

  [[nodiscard]] bool contains(JobId job) const { return std::ranges::binary_search(jobs_, job); }
  [[nodiscard]] bool empty() const noexcept { return jobs_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }
  [[nodiscard]] JobId operator[](std::size_t at) const noexcept { return jobs_[at]; }
  [[nodiscard]] auto begin() const noexcept { return jobs_.begin(); }
  [[nodiscard]] auto end() const noexcept { return jobs_.end(); }

 private:
  std::vector<JobId> jobs_;
};

}  // namespace berth
