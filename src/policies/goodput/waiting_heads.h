// Jobs without GPUs that may start at their smallest size as soon as there is room, in the order of
// their ids. Those of one shape and smallest size are alike: when the first finds no room the
// others are not asked, so that a pass costs O(kinds) and not O(queue). Jobs that got GPUs by other
// ways are dropped when they surface.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/common/lanes.h"

namespace berth {

class WaitingHeads {
 public:
  void begin(std::size_t jobs) { is_listed_.resize(jobs); }
  /// It waits, `least` being its smallest size, which never changes. May be told again.
  void add(const View& view, JobId job, std::int32_t least) {
    if (is_listed_[job.value]) return;
    is_listed_[job.value] = true;
    lanes_.push({view.jobs.shape[job], least}, job);
  }
  /// Asks for the first of each kind, and for the next if that one could start.
  template <class TryStart>
  void start(const View& view, const Plan& plan, TryStart&& try_start) {
    if (plan.cluster().free_gpus() == 0) return;
    lanes_.begin_pass(view.jobs);
    for (const std::uint32_t at : lanes_.active()) drop_holding(view, plan, at);
    while (const auto at = first_open()) {
      Lane& lane = lanes_[*at];
      if (!try_start(lane.jobs.top())) {
        lane.blocked = true;
        continue;
      }
      drop_holding(view, plan, *at);
      if (plan.cluster().free_gpus() == 0) return;
    }
  }

 private:
  using Kind = std::pair<ShapeId, std::int32_t>;
  using Lane = Lanes<Kind>::Lane;

  void drop_holding(const View& view, const Plan& plan, std::uint32_t at) {
    auto& jobs = lanes_[at].jobs;
    while (!jobs.empty() && plan.holds(jobs.top())) is_listed_[jobs.pop(view.jobs).value] = false;
  }
  [[nodiscard]] std::optional<std::uint32_t> first_open() const {
    std::optional<std::uint32_t> first;
    for (const std::uint32_t at : lanes_.active()) {
      const Lane& lane = lanes_[at];
      if (lane.is_open() && (!first || lane.jobs.top() < lanes_[*first].jobs.top())) first = at;
    }
    return first;
  }

  Lanes<Kind> lanes_;
  std::vector<bool> is_listed_;  // by JobId
};

}  // namespace berth
