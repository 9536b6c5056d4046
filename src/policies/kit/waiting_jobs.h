// Jobs that wait, one heap per group: shape, kind, or a group of the policy's own (groups.h).
// Ordered by (key, JobId), smaller first; with the default key that is the order of arrival. Jobs
// of a group are alike to the placement: if the first finds no place nobody of its group does, so a
// pass looks at a few heads instead of the whole queue.
//
// Keys of waiting jobs do not change. A job has at most one valid entry; one that leaves other than
// by pop() is forgotten, and its entry vanishes when it surfaces, so that every top() is a job that
// waits. Push and pop cost O(log n), a pass O(groups) for each job that it tries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"
#include "base/int128.h"
#include "core/kind.h"
#include "core/shape.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/groups.h"

namespace berth {

struct OrderKey {
  Int128 value = 0;
  JobId job;  // ties: smaller submit, then smaller id, which is the order of JobIds
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

/// What became of the first job of a group.
enum class Tried : std::uint8_t {
  Started,  // it is taken off; the next of its group may be tried
  NoPlace,  // its group is blocked: nobody of it is tried in this pass
  Enough,   // nobody at all is tried any more
};

template <class Group>
class WaitingJobs {
 public:
  void push(Group group, const OrderKey& key) {
    if (group.value >= heaps_.size()) heaps_.resize(group.value + 1);
    if (key.job.value >= stamps_.size())
      stamps_.resize(std::max<std::size_t>(key.job.value + 1, stamps_.size() * 2));
    Heap& heap = heaps_[group];
    if (heap.empty()) active_.push_back(group);
    heap.push_back({key, ++stamps_[key.job]});
    std::ranges::push_heap(heap, Later{});
  }
  /// In order of arrival.
  void push(Group group, JobId job) { push(group, {.job = job}); }

  /// Groups with waiting jobs, those that wait longest without a break first.
  [[nodiscard]] const std::vector<Group>& active() const noexcept { return active_; }
  [[nodiscard]] const OrderKey& top(Group group) const noexcept {
    return heaps_[group].front().key;
  }
  [[nodiscard]] bool empty() const noexcept { return active_.empty(); }
  [[nodiscard]] bool empty(Group group) const noexcept {
    return group.value >= heaps_.size() || heaps_[group].empty();
  }

  OrderKey pop(Group group) {
    const OrderKey key = top(group);
    drop_top(heaps_[group]);
    prune(group);
    return key;
  }
  /// The job no longer waits here; nothing happens if it did not.
  void forget(Group group, JobId job) {
    if (job.value >= stamps_.size() || empty(group)) return;
    ++stamps_[job];
    prune(group);
  }
  /// Moves every job out: for re-keying.
  void drain(std::vector<JobId>& out) {
    for (const Group group : active_) {
      for (const Entry& entry : heaps_[group]) {
        if (is_valid(entry)) out.push_back(entry.key.job);
      }
      heaps_[group].clear();
    }
    active_.clear();
  }

  /// Of the groups that are not blocked and may be tried now (`may(group)`) the one whose first job
  /// comes first.
  template <class May>
  [[nodiscard]] std::optional<Group> first(May&& may) const {
    std::optional<Group> best;
    for (const Group group : active_) {
      if (blocked_.has(group) || !may(group)) continue;
      if (!best || top(group) < top(*best)) best = group;
    }
    return best;
  }
  [[nodiscard]] std::optional<Group> first() const {
    return first([](Group) { return true; });
  }

  /// Tries jobs by their keys: of the groups that may be tried now, the first job (`start(job)`
  /// answers Tried), until nobody is left. `start` may push jobs, and forget others than its own.
  template <class May, class Start>
  void pass(May&& may, Start&& start) {
    unblock();
    resume(may, start);
  }
  /// The same, but groups that found no place before stay blocked until unblock(): for policies
  /// that know when devices come back.
  template <class May, class Start>
  void resume(May&& may, Start&& start) {
    while (const auto group = first(may)) {
      const JobId job = top(*group).job;
      switch (start(job)) {
        case Tried::Started: take_off(*group, job); break;
        case Tried::NoPlace: block(*group); break;
        case Tried::Enough: return;
      }
    }
  }
  void block(Group group) { blocked_.add(group); }
  [[nodiscard]] bool is_blocked(Group group) const noexcept { return blocked_.has(group); }
  void unblock() noexcept { blocked_.clear(); }

 private:
  struct Entry {
    OrderKey key;
    std::uint32_t stamp;
  };
  using Heap = std::vector<Entry>;
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const noexcept { return b.key < a.key; }
  };
  [[nodiscard]] bool is_valid(const Entry& entry) const noexcept {
    return entry.stamp == stamps_[entry.key.job];
  }
  static void drop_top(Heap& heap) {
    std::ranges::pop_heap(heap, Later{});
    heap.pop_back();
  }
  /// Whoever was pushed while the job started may stand before it now.
  void take_off(Group group, JobId job) {
    if (top(group).job == job) {
      pop(group);
    } else {
      forget(group, job);
    }
  }
  void prune(Group group) {
    Heap& heap = heaps_[group];
    while (!heap.empty() && !is_valid(heap.front())) drop_top(heap);
    if (heap.empty()) std::erase(active_, group);
  }

  Column<Group, Heap> heaps_;
  std::vector<Group> active_;
  Column<JobId, std::uint32_t> stamps_;  // a job's entry with this stamp is the valid one
  BlockedSet<Group> blocked_;
};

using WaitingByShape = WaitingJobs<ShapeId>;
using WaitingByKind = WaitingJobs<KindId>;

}  // namespace berth
