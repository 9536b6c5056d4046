#include "policies/antman/tenants.h"

#include "base/int128.h"

namespace berth::antman {

void Tenants::set_quota(const std::string& name, std::int64_t gpus) {
  const auto [entry, is_new] =
      ids_.try_emplace(name, TenantId{static_cast<std::uint32_t>(rows_.size())});
  if (is_new) rows_.push_back({.name = name});
  rows_[entry->second.value].quota = gpus;
  rows_[0].quota = 0;  // quotas are in force: strangers have none
}

TenantId Tenants::find(std::string_view name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? TenantId{0} : found->second;
}

bool Tenants::before(TenantId a, TenantId b) const noexcept {
  const Row& left = rows_[a.value];
  const Row& right = rows_[b.value];
  // used / quota without a division; a quota of zero is used up.
  const Int128 cross_left = Int128{left.used} * right.quota;
  const Int128 cross_right = Int128{right.used} * left.quota;
  const bool left_none = left.quota == 0;
  const bool right_none = right.quota == 0;
  if (left_none != right_none) return right_none;
  if (!left_none && cross_left != cross_right) return cross_left < cross_right;
  return left.name != right.name ? left.name < right.name : a < b;
}

}  // namespace berth::antman
