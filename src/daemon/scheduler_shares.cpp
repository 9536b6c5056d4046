// Who may use how much and has used how much: from the settings and the store to the gates and to
// the policy that shares by it. What runs is counted by those who see it run; the store knows what
// has ended, also before a restart.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "daemon/scheduler.h"
#include "daemon/share_settings.h"
#include "policies/fair_share/fair_share.h"

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

Result<std::unique_ptr<Policy>> Scheduler::make_policy_of(PolicyChoice choice,
                                                          const Names& names) const {
  if (choice.policy != "fair-share") return make_policy(choice.policy, choice.settings);
  const auto said = std::ranges::find(choice.settings, "half_life", [](const auto& setting) {
    return std::string_view{setting.first};
  });
  double half_life = parts_.options.half_life;
  if (said == choice.settings.end()) {
    choice.settings.emplace_back("half_life", fmt::format("{}", half_life));
  } else {
    BERTH_TRY(const Duration own, parse_duration(said->second));
    half_life = to_seconds(own);
  }
  BERTH_TRY(auto policy, make_policy(choice.policy, choice.settings));
  auto& fair = static_cast<FairShare&>(*policy);
  fair.set_preemptible([this, &names](const JobRequest& request) {
    JobNumber number = 0;  // jobs of an engine are called by their numbers
    const std::string_view text = names.text(request.id);
    std::from_chars(text.data(), text.data() + text.size(), number);
    const auto job = parts_.board.find(number);
    return !job || job->spec->preemptible;
  });
  Accounts& accounts = fair.accounts();
  for (const auto& [key, value] : parts_.board.settings()) {
    const auto share = share_from_setting(key, value);
    if (!share || !(share->shares > 0)) continue;
    accounts.set_share(share->kind == "group" ? "group/" + share->name : share->name,
                       share->shares);
  }
  BERTH_TRY(const auto usage, parts_.store.usage(parts_.clock.wall(), half_life));
  for (const Store::Usage& row : usage)
    accounts.add_use(accounts.leaf(row.user, row.group), row.gpu_seconds);
  return policy;
}

}  // namespace berth
