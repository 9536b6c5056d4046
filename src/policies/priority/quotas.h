// GPU quotas of tenants: what each is guaranteed and what it may never exceed. Tenants that were
// not listed are guaranteed nothing and limited by nothing; no rule can tell them apart, so they
// share one entry. Without any quota there are no guarantees at all and the whole cluster is one
// tenant's.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::priority {

struct Quota {
  std::int64_t guaranteed = 0;
  std::int64_t hard = std::numeric_limits<std::int64_t>::max();
};

class Quotas {
 public:
  using TenantId = std::uint32_t;
  static constexpr TenantId kOthers = 0;

  /// Sets or changes a tenant's quota; tenants are added before the first job only.
  void set(const std::string& tenant, const Quota& quota) {
    const auto [entry, is_new] = ids_.try_emplace(tenant, static_cast<TenantId>(rows_.size()));
    if (is_new) {
      rows_.emplace_back();
      names_.push_back(tenant);
    }
    rows_[entry->second] = quota;
  }
  [[nodiscard]] bool knows(std::string_view tenant) const { return ids_.contains(tenant); }
  [[nodiscard]] TenantId find(std::string_view tenant) const {
    const auto found = ids_.find(tenant);
    return found == ids_.end() ? kOthers : found->second;
  }
  [[nodiscard]] const Quota& operator[](TenantId tenant) const noexcept { return rows_[tenant]; }
  [[nodiscard]] const std::string& name(TenantId tenant) const noexcept { return names_[tenant]; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  /// Are there guarantees to respect?
  [[nodiscard]] bool in_use() const noexcept { return rows_.size() > 1; }

 private:
  std::vector<Quota> rows_ = std::vector<Quota>(1);
  std::vector<std::string> names_ = {""};
  std::map<std::string, TenantId, std::less<>> ids_;
};

}  // namespace berth::priority
