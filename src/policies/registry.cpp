#include "policies/registry.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"
#include "policies/agents/agents.h"
#include "policies/andreas/andreas.h"
#include "policies/antman/antman.h"
#include "policies/aonline/aonline.h"
#include "policies/bsbf/sharing_sjf.h"
#include "policies/capacity/capacity.h"
#include "policies/chronus/chronus.h"
#include "policies/conservative/conservative.h"
#include "policies/drf/drf.h"
#include "policies/easy/easy.h"
#include "policies/elasticflow/elasticflow.h"
#include "policies/fair_share/fair_share.h"
#include "policies/gandiva/gandiva.h"
#include "policies/gandiva_fair/gandiva_fair.h"
#include "policies/gavel/gavel.h"
#include "policies/hived/hived.h"
#include "policies/hpo/hpo.h"
#include "policies/list_order/list_order.h"
#include "policies/lucid/lucid.h"
#include "policies/muri/muri.h"
#include "policies/oasis/oasis.h"
#include "policies/optimus/optimus.h"
#include "policies/pai/pai.h"
#include "policies/philly/philly.h"
#include "policies/pollux/pollux.h"
#include "policies/preemptive/preemptive.h"
#include "policies/priority/priority.h"
#include "policies/qssf/qssf.h"
#include "policies/rubick/rubick.h"
#include "policies/shockwave/shockwave.h"
#include "policies/sia/sia.h"
#include "policies/synergy/synergy.h"
#include "policies/themis/themis.h"
#include "policies/tiresias/tiresias.h"

namespace berth {

namespace {

void add(std::vector<PolicyEntry>& all, PolicyEntry entry) { all.push_back(std::move(entry)); }
void add(std::vector<PolicyEntry>& all, std::vector<PolicyEntry> entries) {
  std::ranges::move(entries, std::back_inserter(all));
}

/// Each is one entry, or those of a family.
template <class... Entries>
std::vector<PolicyEntry> table(Entries... entries) {
  std::vector<PolicyEntry> all;
  (add(all, std::move(entries)), ...);
  return all;
}

std::vector<PolicyEntry> make_registry() {
  return table(list_order_entries(), easy_entry(), conservative_entry(), capacity_entry(),
               drf_entry(), priority_entry(), fair_share_entry(), qssf_entry(), pai_entry(),
               philly_entry(), preemptive_entries(), tiresias_entries(), agents_entry(),
               andreas_entry(), hived_entry(), sjf_ffs_entry(), sjf_bsbf_entry(), lucid_entry(),
               muri_l_entry(), muri_s_entry(), gandiva_entry(), gandiva_fair_entry(),
               antman_entry(), antman_lite_entry(), synergy_entry(), oasis_entry(), aonline_entry(),
               chronus_entry(), elasticflow_entry(), pollux_entry(), sia_entry(), rubick_entry(),
               optimus_entry(), themis_entry(), ftf_fractional_entry(), shockwave_entry(),
               hpo_entry(), gavel_entries());
}

}  // namespace

std::span<const PolicyEntry> policy_registry() {
  static const std::vector<PolicyEntry> kRegistry = make_registry();
  return kRegistry;
}

Result<const PolicyEntry*> find_policy(std::string_view name) {
  std::vector<std::string> known;
  for (const PolicyEntry& entry : policy_registry()) {
    if (entry.name == name) return &entry;
    known.push_back(entry.name);
  }
  return fail(fmt::format("no policy is called '{}'{}", name, suggestion(name, known)));
}

Result<std::unique_ptr<Policy>> make_live_policy(std::string_view name, const Settings& settings) {
  BERTH_TRY(const PolicyEntry* entry, find_policy(name));
  Settings all;
  for (const ParamSpec& spec : entry->params) {
    if (!spec.live_default.empty()) all.emplace_back(spec.key, spec.live_default);
  }
  std::erase_if(all, [&](const auto& one) {
    return std::ranges::find(settings, one.first, &Settings::value_type::first) != settings.end();
  });
  all.insert(all.end(), settings.begin(), settings.end());
  return make_policy(name, all);
}

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Settings& settings) {
  BERTH_TRY(const PolicyEntry* entry, find_policy(name));
  BERTH_TRY(const Params params, Params::make(entry->name, entry->params, settings));
  return entry->make(*entry, params);
}

PolicyTraits traits_of(const PolicyEntry& entry) {
  const auto params = Params::make(entry.name, entry.params, {});
  BERTH_CHECK(params.has_value(), "declared defaults are settings");
  const auto policy = entry.make(entry, *params);
  BERTH_CHECK(policy.has_value(), "a policy can be made with its defaults");
  return (*policy)->traits();
}

std::string needs_text(Need needs) {
  std::string text;
  const auto add = [&](Need one, std::string_view word) {
    if (!includes(needs, one)) return;
    if (!text.empty()) text += ", ";
    text += word;
  };
  add(Need::RunTime, "duration");
  add(Need::Deadline, "deadline");
  add(Need::History, "history");
  add(Need::Profile, "profile");
  add(Need::Reports, "training reports");
  return text.empty() ? "nothing" : text;
}

}  // namespace berth
