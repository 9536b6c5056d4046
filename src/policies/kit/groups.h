// Groups of jobs that a policy treats alike by more than their shape or kind: a key of its own
// (tenant and shape, queue and priority), numbered in the order in which keys are first seen, so
// that WaitingJobs and BlockedSet can be indexed by them.
#pragma once

#include <cstdint>
#include <map>

#include "base/id.h"

namespace berth {

using GroupId = Id<struct GroupTag>;

template <class Key>
class Groups {
 public:
  [[nodiscard]] GroupId of(const Key& key) {
    const auto [entry, is_new] =
        ids_.try_emplace(key, GroupId{static_cast<std::uint32_t>(keys_.size())});
    if (is_new) keys_.push_back(key);
    return entry->second;
  }
  [[nodiscard]] const Key& operator[](GroupId group) const noexcept { return keys_[group]; }
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  Column<GroupId, Key> keys_;
  std::map<Key, GroupId> ids_;
};

}  // namespace berth
