// Jobs that wait, one heap per shape or kind, ordered by (key, JobId), smaller first. Jobs of a
// kind are alike to the placement: if the first of a kind finds no place nobody of it does, so a
// pass looks at a few heads instead of the whole queue.
//
// Keys of waiting jobs do not change. A job has at most one valid entry; one that leaves other than
// by pop() is forgotten, and its entry vanishes when it surfaces, so that every top() is a job that
// waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"
#include "base/int128.h"
#include "core/kind.h"
#include "core/shape.h"

namespace berth {

struct OrderKey {
  Int128 value = 0;
  JobId job;  // ties: smaller submit, then smaller id, which is the order of JobIds
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

/// What became of the first job of a kind.
enum class Tried : std::uint8_t {
  Started,  // it is taken off; the next of its kind may be tried
  NoPlace,  // nobody of its kind is tried in this pass
  Enough,   // nobody at all
};

template <class Group>
class WaitingJobs {
 public:
  void push(Group group, const OrderKey& key) {
    if (group.value >= heaps_.size()) heaps_.resize(group.value + 1);
    if (key.job.value >= stamps_.size())
      stamps_.resize(std::max<std::size_t>(key.job.value + 1, stamps_.size() * 2));
    auto& heap = heaps_[group.value];
    if (heap.empty()) active_.push_back(group);
    heap.push_back({key, ++stamps_[key.job.value]});
    std::ranges::push_heap(heap, Later{});
  }
  /// Groups with waiting jobs, in no particular order: compare keys, not positions.
  [[nodiscard]] const std::vector<Group>& active() const noexcept { return active_; }
  [[nodiscard]] const OrderKey& top(Group group) const noexcept {
    return heaps_[group.value].front().key;
  }
  [[nodiscard]] bool empty() const noexcept { return active_.empty(); }

  OrderKey pop(Group group) {
    const OrderKey key = top(group);
    drop_top(heaps_[group.value]);
    prune(group);
    return key;
  }
  /// The job no longer waits here; nothing happens if it did not.
  void forget(Group group, JobId job) {
    if (job.value >= stamps_.size() || group.value >= heaps_.size() || heaps_[group.value].empty())
      return;
    ++stamps_[job.value];
    prune(group);
  }
  /// Moves every job out: for re-keying.
  void drain(std::vector<JobId>& out) {
    for (auto& heap : heaps_) {
      for (const Entry& entry : heap) {
        if (is_valid(entry)) out.push_back(entry.key.job);
      }
      heap.clear();
    }
    active_.clear();
  }

  /// Tries jobs by their keys: of the groups that may be tried now (`may(group)`), the first job
  /// (`start(job)` answers Tried), until nobody is left.
  template <class May, class Start>
  void pass(May&& may, Start&& start) {
    has_no_place_.assign(heaps_.size(), false);
    for (;;) {
      std::optional<Group> best;
      for (const Group group : active_) {
        if (has_no_place_[group.value] || !may(group)) continue;
        if (!best || top(group) < top(*best)) best = group;
      }
      if (!best) return;
      switch (start(top(*best).job)) {
        case Tried::Started: pop(*best); break;
        case Tried::NoPlace: has_no_place_[best->value] = true; break;
        case Tried::Enough: return;
      }
    }
  }

 private:
  struct Entry {
    OrderKey key;
    std::uint32_t stamp;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const noexcept { return b.key < a.key; }
  };
  [[nodiscard]] bool is_valid(const Entry& entry) const noexcept {
    return entry.stamp == stamps_[entry.key.job.value];
  }
  static void drop_top(std::vector<Entry>& heap) {
    std::ranges::pop_heap(heap, Later{});
    heap.pop_back();
  }
  void prune(Group group) {
    auto& heap = heaps_[group.value];
    while (!heap.empty() && !is_valid(heap.front())) drop_top(heap);
    if (heap.empty()) std::erase(active_, group);
  }

  std::vector<std::vector<Entry>> heaps_;  // by group
  std::vector<Group> active_;
  std::vector<std::uint32_t> stamps_;  // by JobId
  std::vector<bool> has_no_place_;     // in a pass, by group
};

using WaitingByShape = WaitingJobs<ShapeId>;
using WaitingByKind = WaitingJobs<KindId>;

}  // namespace berth
