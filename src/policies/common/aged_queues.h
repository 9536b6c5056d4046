// Waiting jobs in lanes (virtual clusters, or one for all), by key inside a lane, with patience: a
// job that has waited out its patience goes before all others, in order of arrival. Like
// WaitingByShape, one heap per request shape, so that a pass looks at heads only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "core/plan.h"
#include "core/view.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {

class AgedQueues {
 public:
  struct Entry {
    std::size_t lane = 0;
    ShapeId shape;
    Int128 key = 0;  // smaller first; not negative
    Time patient_until = kNever;
  };

  void push(JobId job, const Entry& entry) {
    if (job.value >= entries_.size())
      entries_.resize(std::max<std::size_t>(job.value + 1, entries_.size() * 2));
    if (entry.lane >= lanes_.size()) lanes_.resize(entry.lane + 1);
    entries_[job.value] = entry;
    lanes_[entry.lane].push(entry.shape, {entry.key, job});
    if (entry.patient_until != kNever) {
      patience_.push_back({entry.patient_until, job});
      std::ranges::push_heap(patience_, std::ranges::greater{});
    }
  }
  void forget(JobId job) {
    if (job.value >= entries_.size()) return;
    const Entry& entry = entries_[job.value];
    lanes_[entry.lane].forget(entry.shape, job);
    entries_[job.value].patient_until = kNever;
  }

  /// Jobs whose patience has ended go first from now on.
  void promote(Time now) {
    drop_stale();
    for (; !patience_.empty() && patience_.front().first <= now; drop_stale()) {
      const JobId job = patience_.front().second;
      Entry& entry = entries_[job.value];
      lanes_[entry.lane].forget(entry.shape, job);
      entry.patient_until = kNever;
      entry.key = -1;
      lanes_[entry.lane].push(entry.shape, {entry.key, job});
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
  void pass(const View& view, const Plan& plan, bool strict, Start&& start) {
    blocked_shapes_.assign(lanes_.size() * view.shapes.size(), false);
    blocked_lanes_.assign(lanes_.size(), false);
    for (;;) {
      std::optional<std::pair<std::size_t, ShapeId>> best;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (blocked_lanes_[lane]) continue;
        for (const ShapeId shape : lanes_[lane].active()) {
          if (blocked_shapes_[lane * view.shapes.size() + shape.value]) continue;
          if (!strict && !plan.has_room(view.shapes[shape])) continue;
          if (!best || lanes_[lane].top(shape) < lanes_[best->first].top(best->second))
            best = {lane, shape};
        }
      }
      if (!best) return;
      const auto [lane, shape] = *best;
      const JobId job = lanes_[lane].top(shape).job;
      if (start(job)) {
        lanes_[lane].pop(shape);
        entries_[job.value].patient_until = kNever;
      } else if (strict) {
        blocked_lanes_[lane] = true;
      } else {
        blocked_shapes_[lane * view.shapes.size() + shape.value] = true;
      }
    }
  }

 private:
  void drop_stale() {
    while (!patience_.empty() &&
           entries_[patience_.front().second.value].patient_until != patience_.front().first) {
      std::ranges::pop_heap(patience_, std::ranges::greater{});
      patience_.pop_back();
    }
  }

  std::vector<WaitingByShape> lanes_;
  std::vector<Entry> entries_;                        // by JobId
  std::vector<std::pair<Time, JobId>> patience_;      // heap, earliest first
  std::vector<bool> blocked_shapes_, blocked_lanes_;  // scratch of a pass
};

}  // namespace berth
