#include "daemon/share_accounts.h"

#include <map>
#include <utility>

#include "daemon/share_settings.h"

namespace berth {

void ShareAccounts::begin_engine(const Policy& policy, bool is_recalled) {
  shares_by_use_ = policy.traits().shares_by_use.has_value();
  has_told_uses_ = is_recalled;
  last_shares_.reset();
}

bool ShareAccounts::has_news() const { return shares_by_use_ && shares() != last_shares_; }

void ShareAccounts::set_limits(Gates& gates) const {
  for (const auto& [key, value] : parts_.board.settings()) {
    if (!key.starts_with("share/")) continue;
    if (const auto share = share_from_setting(key, value)) {
      gates.set_limits(key.substr(6), {.gpus = share->gpu_limit,
                                       .jobs = share->job_limit,
                                       .gpu_seconds = share->gpu_seconds_limit});
    }
  }
}

Result<void> ShareAccounts::set_uses(Gates& gates, double half_life) const {
  gates.set_half_life(half_life);
  BERTH_TRY(const auto usage, parts_.store.usage(parts_.clock.wall(), half_life));
  std::map<std::string, double> uses;  // a user's over all its groups
  for (const Store::Usage& row : usage) {
    uses["user/" + row.user] += row.gpu_seconds;
    if (!row.group.empty()) uses["group/" + row.group] += row.gpu_seconds;
  }
  for (const auto& [who, seconds] : uses) gates.set_use(who, seconds, parts_.clock.now());
  return {};
}

std::vector<Entitlement> ShareAccounts::shares() const {
  std::vector<Entitlement> shares;
  for (const auto& [key, value] : parts_.board.settings()) {
    const auto share = share_from_setting(key, value);
    if (!share || !(share->shares > 0) || share->shares == Entitlement{}.shares) continue;
    shares.push_back(
        {share->kind == "group" ? "group/" + share->name : share->name, share->shares});
  }
  return shares;
}

Entitlements ShareAccounts::entitlements(const Policy& policy) {
  Entitlements said;
  const auto half_life = policy.traits().shares_by_use;
  if (!half_life) return said;
  last_shares_ = said.shares = shares();
  if (std::exchange(has_told_uses_, true)) return said;
  const auto usage = parts_.store.usage(parts_.clock.wall(), to_seconds(*half_life));
  if (!usage) return said;
  for (const Store::Usage& row : *usage)
    said.uses.push_back({row.user, row.group, row.gpu_seconds});
  return said;
}

}  // namespace berth
