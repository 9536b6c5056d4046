// Waiting jobs in lanes: all jobs of a lane are alike to the policy (same shape, and whatever else
// is in the key), so if its head cannot start now, nobody in it can. A pass looks at one head per
// lane instead of at every job. Lanes without jobs are left out of a pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "policies/common/job_heap.h"

namespace berth {

template <class Key>
class Lanes {
 public:
  struct Lane {
    Key key;
    JobHeap jobs;
    bool blocked = false;  // its head was tried in this pass
    bool active = false;
    [[nodiscard]] bool is_open() const noexcept { return !blocked && !jobs.empty(); }
  };

  void push(const Key& key, JobId job) {
    const auto [entry, is_new] = index_.try_emplace(key, static_cast<std::uint32_t>(lanes_.size()));
    if (is_new) lanes_.push_back({.key = key, .jobs = {}});
    Lane& lane = lanes_[entry->second];
    if (!lane.active) active_.push_back(entry->second);
    lane.active = true;
    lane.jobs.push(job);
  }
  /// Drops what is over at the heads and opens all lanes again.
  void begin_pass(const JobTable& table) {
    std::erase_if(active_, [&](std::uint32_t at) {
      Lane& lane = lanes_[at];
      lane.jobs.drop_over(table);
      lane.blocked = false;
      lane.active = !lane.jobs.empty();
      return !lane.active;
    });
  }
  /// Lanes that may have jobs, in no particular order: compare heads, not positions.
  [[nodiscard]] const std::vector<std::uint32_t>& active() const noexcept { return active_; }
  [[nodiscard]] Lane& operator[](std::uint32_t at) noexcept { return lanes_[at]; }
  [[nodiscard]] const Lane& operator[](std::uint32_t at) const noexcept { return lanes_[at]; }

 private:
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> active_;
  std::map<Key, std::uint32_t> index_;
};

}  // namespace berth
