// The demand-indexed wait queue: one heap per request shape, ordered by (key, JobId), smaller first. "The
// best waiting job that fits" is then a look at a few heads instead of a scan of the queue. Jobs that left
// by themselves (cancelled) or were forgotten are dropped when they surface. Keys of waiting jobs do not
// change; a job has at most one valid entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "base/int128.h"
#include "core/job_table.h"
#include "core/shape.h"

namespace berth {

struct OrderKey {
  Int128 value = 0;
  JobId job;  // ties: smaller submit, then smaller id, which is the order of JobIds
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

class ShapeQueues {
 public:
  void push(ShapeId shape, const OrderKey& key) {
    if (shape.value >= heaps_.size()) heaps_.resize(shape.value + 1);
    if (key.job.value >= stamps_.size()) stamps_.resize(std::max<std::size_t>(key.job.value + 1, stamps_.size() * 2));
    auto& heap = heaps_[shape.value];
    if (heap.empty()) active_.push_back(shape);
    heap.push_back({key, ++stamps_[key.job.value]});
    std::ranges::push_heap(heap, Later{});
    ++size_;
  }
  /// Shapes with waiting jobs, in no particular order: compare keys, not positions.
  [[nodiscard]] const std::vector<ShapeId>& active() const noexcept { return active_; }
  [[nodiscard]] const OrderKey& top(ShapeId shape) const noexcept { return heaps_[shape.value].front().key; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Entries, including jobs that have left and not surfaced yet.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  OrderKey pop(ShapeId shape) {
    const OrderKey key = top(shape);
    drop_top(heaps_[shape.value]);
    if (heaps_[shape.value].empty()) std::erase(active_, shape);
    return key;
  }
  /// The job's entry, wherever it is, no longer counts.
  void forget(JobId job) {
    if (job.value < stamps_.size()) ++stamps_[job.value];
  }
  /// Moves every valid entry out: for re-keying.
  void drain(std::vector<JobId>& out) {
    for (auto& heap : heaps_) {
      for (const Entry& entry : heap) {
        if (entry.stamp == stamps_[entry.key.job.value]) out.push_back(entry.key.job);
      }
      heap.clear();
    }
    active_.clear();
    size_ = 0;
  }
  /// Drops heads that no longer wait, so that every top() is a job that does.
  void drop_departed(const JobTable& jobs) {
    drop_heads([&](const Entry& entry) { return is_valid(entry, jobs); });
  }
  /// Drops forgotten heads only: for policies that also queue jobs which still hold their devices.
  void drop_forgotten() {
    drop_heads([&](const Entry& entry) { return entry.stamp == stamps_[entry.key.job.value]; });
  }

 private:
  struct Entry {
    OrderKey key;
    std::uint32_t stamp;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const noexcept { return b.key < a.key; }
  };
  template <class Valid>
  void drop_heads(Valid valid) {
    for (std::size_t i = 0; i < active_.size();) {
      auto& heap = heaps_[active_[i].value];
      while (!heap.empty() && !valid(heap.front())) drop_top(heap);
      if (heap.empty()) {
        active_[i] = active_.back();
        active_.pop_back();
      } else {
        ++i;
      }
    }
  }

  [[nodiscard]] bool is_valid(const Entry& entry, const JobTable& jobs) const noexcept {
    return entry.stamp == stamps_[entry.key.job.value] && jobs.is_waiting(entry.key.job);
  }
  void drop_top(std::vector<Entry>& heap) {
    std::ranges::pop_heap(heap, Later{});
    heap.pop_back();
    --size_;
  }

  std::vector<std::vector<Entry>> heaps_;  // by ShapeId
  std::vector<ShapeId> active_;
  std::vector<std::uint32_t> stamps_;      // by JobId
  std::size_t size_ = 0;
};

}  // namespace berth
