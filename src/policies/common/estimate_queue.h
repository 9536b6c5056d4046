// Waiting jobs of one shape in submission order, with their estimates: "the first job" and "the
// first job whose estimate is at most x" in O(log n), whatever the length of the queue. A
// tournament of minima over positions; positions of jobs that left hold infinity and are squeezed
// out when the array is full.
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

class EstimateQueue {
 public:
  struct Found {
    JobId job;
    std::size_t position;
  };

  /// Jobs come in rising order; one that comes back is put at its old place.
  void insert(JobId job, Duration estimate) {
    if (!jobs_.empty() && job < jobs_.back()) {
      insert_before(job, estimate);
      return;
    }
    if (jobs_.size() == capacity_) rebuild();
    jobs_.push_back(job);
    set(jobs_.size() - 1, estimate.count());
    ++live_;
  }
  [[nodiscard]] bool empty() const noexcept { return live_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return live_; }
  [[nodiscard]] std::optional<Found> first() const noexcept { return first_within(kInfinite - 1); }
  [[nodiscard]] std::optional<Found> first_at_most(Duration limit) const noexcept {
    return first_within(std::min(limit.count(), kInfinite - 1));
  }
  void erase(std::size_t position) noexcept {
    set(position, kInfinite);
    --live_;
  }
  /// Undoes erase(); nothing may have been inserted in between.
  void restore(std::size_t position, Duration estimate) noexcept {
    set(position, estimate.count());
    ++live_;
  }
  template <class Visit>  // in order, until visit answers false
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (tree_[capacity_ + i] != kInfinite && !visit(Found{jobs_[i], i})) return;
    }
  }

 private:
  static constexpr std::int64_t kInfinite = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] std::optional<Found> first_within(std::int64_t limit) const noexcept {
    if (live_ == 0 || tree_[1] > limit) return std::nullopt;
    std::size_t at = 1;
    while (at < capacity_) at = tree_[at * 2] <= limit ? at * 2 : at * 2 + 1;
    return Found{jobs_[at - capacity_], at - capacity_};
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
    const auto at = std::ranges::lower_bound(jobs_, job) - jobs_.begin();
    jobs_.insert(jobs_.begin() + at, job);
    values_.insert(values_.begin() + at, estimate.count());
    build(capacity_);
    ++live_;
  }

  std::vector<JobId> jobs_;           // by position, rising
  std::vector<std::int64_t> tree_;    // tree_[capacity_ + position] = estimate, or infinity if gone
  std::vector<std::int64_t> values_;  // scratch of a rebuild
  std::size_t capacity_ = 0;
  std::size_t live_ = 0;
};

}  // namespace berth
