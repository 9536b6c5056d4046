// Who pays for guaranteed GPUs: a quota per tenant, what is used of it, and the order in which
// tenants get their turn (least used share of their quota first, then name). Without any quota
// everybody belongs to one tenant without a limit. With quotas, a tenant that was not listed has
// none and can only run opportunistic jobs.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "base/id.h"
#include "base/int128.h"

namespace berth::antman {

using TenantId = Id<struct AntmanTenantTag>;
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

class Tenants {
 public:
  void set_quota(const std::string& name, std::int64_t gpus) {
    const auto [entry, is_new] =
        ids_.try_emplace(name, TenantId{static_cast<std::uint32_t>(rows_.size())});
    if (is_new) rows_.push_back({.name = name});
    rows_[entry->second].quota = gpus;
    rows_[TenantId{0}].quota = 0;  // quotas are in force: strangers have none
  }
  /// Everybody else; TenantId{0}.
  [[nodiscard]] TenantId find(std::string_view name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? TenantId{0} : found->second;
  }

  [[nodiscard]] std::int64_t quota(TenantId tenant) const noexcept { return rows_[tenant].quota; }
  [[nodiscard]] std::int64_t used(TenantId tenant) const noexcept { return rows_[tenant].used; }
  [[nodiscard]] bool covers(TenantId tenant, std::int32_t gpus) const noexcept {
    return gpus <= quota(tenant) - used(tenant);
  }
  void use(TenantId tenant, std::int32_t gpus) noexcept { rows_[tenant].used += gpus; }
  void give_back(TenantId tenant, std::int32_t gpus) noexcept { rows_[tenant].used -= gpus; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  /// Whose turn is first: the smaller used / quota, then the earlier name.
  [[nodiscard]] bool before(TenantId a, TenantId b) const noexcept {
    const Row& left = rows_[a];
    const Row& right = rows_[b];
    if ((left.quota == 0) != (right.quota == 0)) return right.quota == 0;  // zero is used up
    if (left.quota != 0) {  // cross-multiplied: without the rounding of a division
      const Int128 cross_left = Int128{left.used} * right.quota;
      const Int128 cross_right = Int128{right.used} * left.quota;
      if (cross_left != cross_right) return cross_left < cross_right;
    }
    return left.name != right.name ? left.name < right.name : a < b;
  }

 private:
  struct Row {
    std::string name;
    std::int64_t quota = kUnlimited;
    std::int64_t used = 0;
  };
  Column<TenantId, Row> rows_{1};
  std::map<std::string, TenantId, std::less<>> ids_;
};

}  // namespace berth::antman
