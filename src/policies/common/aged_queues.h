// Waiting jobs in lanes (virtual clusters, or one for all), by key inside a lane, with patience: a
// job that has waited out its patience goes before all others, in order of arrival. A pass looks at
// one head per lane and request shape.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/plan.h"
#include "core/view.h"
#include "policies/common/pass_rule.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {

class AgedQueues {
 public:
  using LaneId = Id<struct LaneTag>;
  struct Entry {
    LaneId lane;
    ShapeId shape;
    Int128 key = 0;  // smaller first; not negative
    Time patient_until = kNever;
  };

  void push(JobId job, const Entry& entry) {
    if (job.value >= entries_.size())
      entries_.resize(std::max<std::size_t>(job.value + 1, entries_.size() * 2));
    entries_[job] = entry;
    waiting_.push(group_of(job), {entry.key, job});
    if (entry.patient_until == kNever) return;
    patience_.emplace_back(entry.patient_until, job);
    std::ranges::push_heap(patience_, std::ranges::greater{});
  }
  void forget(JobId job) {
    if (job.value >= entries_.size()) return;
    waiting_.forget(group_of(job), job);
    entries_[job].patient_until = kNever;
  }

  /// Jobs whose patience has ended go first from now on.
  void promote(Time now) {
    drop_stale();
    for (; !patience_.empty() && patience_.front().first <= now; drop_stale()) {
      const JobId job = patience_.front().second;
      waiting_.forget(group_of(job), job);
      entries_[job].patient_until = kNever;
      waiting_.push(group_of(job), {-1, job});  // before every other key
    }
  }
  /// When the next job runs out of patience.
  [[nodiscard]] std::optional<Time> next_promotion() {
    drop_stale();
    if (patience_.empty()) return std::nullopt;
    return patience_.front().first;
  }

  /// Starts what fits in order of (key, arrival). Strict: a job that does not fit blocks its lane.
  template <class Start>
  void pass(const View& view, const Plan& plan, PassRule rule, Start&& start) {
    const bool is_strict = rule == PassRule::Strict;
    blocked_lanes_.clear();
    waiting_.pass(
        [&](GroupId group) {
          const auto& [lane, shape] = groups_[group];
          return !blocked_lanes_.has(lane) && (is_strict || plan.has_room(view.shapes[shape]));
        },
        [&](JobId job) {
          if (start(job)) {
            entries_[job].patient_until = kNever;
            return Tried::Started;
          }
          if (is_strict) blocked_lanes_.add(entries_[job].lane);
          return Tried::NoPlace;
        });
  }

 private:
  [[nodiscard]] GroupId group_of(JobId job) {
    return groups_.of({entries_[job].lane, entries_[job].shape});
  }
  /// A job that started, left or was promoted has another end of its patience, or none.
  void drop_stale() {
    while (!patience_.empty() &&
           entries_[patience_.front().second].patient_until != patience_.front().first) {
      std::ranges::pop_heap(patience_, std::ranges::greater{});
      patience_.pop_back();
    }
  }

  Groups<std::pair<LaneId, ShapeId>> groups_;
  WaitingJobs<GroupId> waiting_;
  Column<JobId, Entry> entries_;
  std::vector<std::pair<Time, JobId>> patience_;  // heap, earliest first
  BlockedSet<LaneId> blocked_lanes_;              // scratch of a pass
};

}  // namespace berth
