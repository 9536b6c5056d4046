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
#include <vector>

#include "base/id.h"

namespace berth::antman {

using TenantId = Id<struct AntmanTenantTag>;
inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

class Tenants {
 public:
  void set_quota(const std::string& name, std::int64_t gpus);
  /// Everybody else; TenantId{0}.
  [[nodiscard]] TenantId find(std::string_view name) const;

  [[nodiscard]] std::int64_t quota(TenantId tenant) const noexcept {
    return rows_[tenant.value].quota;
  }
  [[nodiscard]] std::int64_t used(TenantId tenant) const noexcept {
    return rows_[tenant.value].used;
  }
  [[nodiscard]] bool covers(TenantId tenant, std::int32_t gpus) const noexcept {
    return gpus <= quota(tenant) - used(tenant);
  }
  void use(TenantId tenant, std::int32_t gpus) noexcept { rows_[tenant.value].used += gpus; }
  void give_back(TenantId tenant, std::int32_t gpus) noexcept { rows_[tenant.value].used -= gpus; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  /// Whose turn is first: the smaller used / quota, then the earlier name.
  [[nodiscard]] bool before(TenantId a, TenantId b) const noexcept;

 private:
  struct Row {
    std::string name;
    std::int64_t quota = kUnlimited;
    std::int64_t used = 0;
  };
  std::vector<Row> rows_ = std::vector<Row>(1);
  std::map<std::string, TenantId, std::less<>> ids_;
};

}  // namespace berth::antman
