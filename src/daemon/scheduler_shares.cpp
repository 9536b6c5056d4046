// Who may use how much and has used how much: from the settings and the store to the gates and to
// the policy that shares by it. What runs is counted by those who see it run; the store knows what
// has ended, also before a restart.
#include <algorithm>

#include <fmt/format.h>

#include "daemon/scheduler.h"
#include "daemon/share_settings.h"

namespace berth {

void Scheduler::set_limits(Gates& gates) const {
  for (const auto& [key, value] : parts_.board.settings()) {
    if (!key.starts_with("share/")) continue;
    if (const auto share = share_from_setting(key, value)) {
      gates.set_limits(key.substr(6), {.gpus = share->gpu_limit,
                                       .jobs = share->job_limit,
                                       .gpu_seconds = share->gpu_seconds_limit});
    }
  }
}

Result<void> Scheduler::set_uses(Gates& gates) const {
  gates.set_half_life(parts_.options.half_life);
  BERTH_TRY(const auto usage, parts_.store.usage(parts_.clock.wall(), parts_.options.half_life));
  std::map<std::string, double> uses;  // a user's over all its groups
  for (const Store::Usage& row : usage) {
    uses["user/" + row.user] += row.gpu_seconds;
    if (!row.group.empty()) uses["group/" + row.group] += row.gpu_seconds;
  }
  for (const auto& [who, seconds] : uses) gates.set_use(who, seconds, parts_.clock.now());
  return {};
}

/// Use counts half after as long as the configuration says, unless the policy was told otherwise.
Result<std::unique_ptr<Policy>> Scheduler::make_policy_of(PolicyChoice choice) const {
  constexpr const char* kHalfLife = "half_life";
  const auto is_half_life = [](const auto& named) { return named == kHalfLife; };
  BERTH_TRY(const PolicyEntry* entry, find_policy(choice.policy));
  const bool has_one = std::ranges::any_of(entry->params, is_half_life, &ParamSpec::key);
  const bool was_told =
      std::ranges::any_of(choice.settings, is_half_life, &Settings::value_type::first);
  if (has_one && !was_told)
    choice.settings.emplace_back(kHalfLife, fmt::format("{}", parts_.options.half_life));
  return make_live_policy(choice.policy, choice.settings);
}

/// What was used before is told once in the life of an engine, however often shares are set.
std::vector<Entitlement> Scheduler::shares() const {
  std::vector<Entitlement> shares;
  for (const auto& [key, value] : parts_.board.settings()) {
    const auto share = share_from_setting(key, value);
    if (!share || !(share->shares > 0) || share->shares == Entitlement{}.shares) continue;
    shares.push_back(
        {share->kind == "group" ? "group/" + share->name : share->name, share->shares});
  }
  return shares;
}

Entitlements Scheduler::entitlements(const Policy& policy) {
  Entitlements said;
  const auto half_life = policy.traits().shares_by_use;
  if (!half_life) return said;
  told_shares_ = said.shares = shares();
  if (std::exchange(has_told_uses_, true)) return said;
  const auto usage = parts_.store.usage(parts_.clock.wall(), to_seconds(*half_life));
  if (!usage) return said;
  for (const Store::Usage& row : *usage)
    said.uses.push_back({row.user, row.group, row.gpu_seconds});
  return said;
}

}  // namespace berth
