// Waiting jobs for backfill: one queue per group of jobs that are alike but for their estimates, in
// order of arrival. "The first job" and "the first job whose estimate is at most x" cost O(log n),
// whatever the length of the queue.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/id.h"
#include "base/time.h"

namespace berth {

/// A tournament of minima over positions in order of JobIds; positions of jobs that left hold
/// infinity and are squeezed out when the array is full.
class EstimateQueue {
 public:
  /// Jobs come in rising order. One that comes back finds its old position, if that has not been
  /// squeezed out meanwhile; otherwise it costs O(n).
  void insert(JobId job, Duration estimate) {
    if (jobs_.empty() || jobs_.back() < job) {
      if (jobs_.size() == capacity_) rebuild();
      jobs_.push_back(job);
      set(jobs_.size() - 1, estimate.count());
    } else if (const std::size_t at = position(job); jobs_[at] == job) {
      set(at, estimate.count());
    } else {
      insert_before(job, estimate);
    }
    ++live_;
  }
  /// Nothing happens if it does not wait here.
  void erase(JobId job) noexcept {
    const std::size_t at = position(job);
    if (at == jobs_.size() || jobs_[at] != job || tree_[capacity_ + at] == kInfinite) return;
    set(at, kInfinite);
    --live_;
  }
  [[nodiscard]] bool empty() const noexcept { return live_ == 0; }
  [[nodiscard]] std::optional<JobId> first() const noexcept { return first_within(kInfinite - 1); }
  [[nodiscard]] std::optional<JobId> first_at_most(Duration limit) const noexcept {
    return first_within(std::min(limit.count(), kInfinite - 1));
  }

 private:
  static constexpr std::int64_t kInfinite = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] std::size_t position(JobId job) const noexcept {
    return static_cast<std::size_t>(std::ranges::lower_bound(jobs_, job) - jobs_.begin());
  }
  [[nodiscard]] std::optional<JobId> first_within(std::int64_t limit) const noexcept {
    if (live_ == 0 || tree_[1] > limit) return std::nullopt;
    std::size_t at = 1;
    while (at < capacity_) at = tree_[at * 2] <= limit ? at * 2 : at * 2 + 1;
    return jobs_[at - capacity_];
  }
  void set(std::size_t position, std::int64_t value) noexcept {
    std::size_t at = capacity_ + position;
    tree_[at] = value;
    for (at /= 2; at > 0; at /= 2) {
      const std::int64_t least = std::min(tree_[at * 2], tree_[at * 2 + 1]);
      if (tree_[at] == least) return;
      tree_[at] = least;
    }
  }
  void rebuild() {
    std::size_t kept = 0;
    values_.clear();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (tree_[capacity_ + i] == kInfinite) continue;
      values_.push_back(tree_[capacity_ + i]);
      jobs_[kept++] = jobs_[i];
    }
    jobs_.resize(kept);
    build(std::bit_ceil(std::max<std::size_t>(16, kept * 2)));
  }
  void build(std::size_t capacity) {
    capacity_ = capacity;
    tree_.assign(capacity * 2, kInfinite);
    std::ranges::copy(values_, tree_.begin() + static_cast<std::ptrdiff_t>(capacity));
    for (std::size_t at = capacity - 1; at > 0; --at)
      tree_[at] = std::min(tree_[at * 2], tree_[at * 2 + 1]);
  }
  void insert_before(JobId job, Duration estimate) {
    rebuild();
    const auto at = static_cast<std::ptrdiff_t>(position(job));
    jobs_.insert(jobs_.begin() + at, job);
    values_.insert(values_.begin() + at, estimate.count());
    build(capacity_);
  }

  std::vector<JobId> jobs_;           // by position, rising
  std::vector<std::int64_t> tree_;    // tree_[capacity_ + position] = estimate, or infinity if gone
  std::vector<std::int64_t> values_;  // scratch of a rebuild
  std::size_t capacity_ = 0;
  std::size_t live_ = 0;
};

template <class Group>
class BackfillQueues {
 public:
  void push(Group group, JobId job, Duration estimate) {
    if (group.value >= queues_.size()) queues_.resize(group.value + 1);
    if (queues_[group].empty()) active_.push_back(group);
    queues_[group].insert(job, estimate);
  }
  /// The job no longer waits here; nothing happens if it did not.
  void forget(Group group, JobId job) {
    if (group.value >= queues_.size() || queues_[group].empty()) return;
    queues_[group].erase(job);
    if (queues_[group].empty()) std::erase(active_, group);
  }
  /// Groups with waiting jobs, in no particular order.
  [[nodiscard]] const std::vector<Group>& active() const noexcept { return active_; }
  /// Of an active group.
  [[nodiscard]] JobId first(Group group) const noexcept { return *queues_[group].first(); }
  [[nodiscard]] std::optional<JobId> first_at_most(Group group, Duration limit) const noexcept {
    return queues_[group].first_at_most(limit);
  }

 private:
  Column<Group, EstimateQueue> queues_;
  std::vector<Group> active_;
};

}  // namespace berth
