#include "policies/registry.h"

#include <algorithm>
#include <iterator>
#include <limits>

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

using Made = Result<std::unique_ptr<Policy>>;

ParamSpec pass_param(std::string default_value) {
  return {"pass", std::move(default_value),
          "strict: stop at the first job that does not fit; skip: try the next"};
}

Made make_list(const PolicyEntry& entry, const Params& params) {
  BERTH_TRY(const auto pass, params.choice("pass", {"strict", "skip"}));
  const ListKey key = entry.name == "sjf"        ? ListKey::RunTime
                      : entry.name == "smallest" ? ListKey::Gpus
                                                 : ListKey::Arrival;
  return std::make_unique<ListOrder>(entry.name, key,
                                     pass == 0 ? PassRule::Strict : PassRule::Skip);
}

Made make_shortest(const PolicyEntry& entry, const Params& params) {
  PreemptiveOptions options;
  options.key = entry.name == "srtf" ? ServiceKey::WorkLeft : ServiceKey::WorkLeftGpus;
  BERTH_TRY(options.preempt_gain, params.duration("preempt_gain"));
  return std::make_unique<Preemptive>(entry.name, options);
}

Made make_edf(const PolicyEntry& entry, const Params&) {
  PreemptiveOptions options;
  options.key = ServiceKey::Deadline;
  return std::make_unique<Preemptive>(entry.name, options);
}

Made make_las(const PolicyEntry& entry, const Params& params) {
  PreemptiveOptions options;
  options.key = entry.name == "las" ? ServiceKey::Attained : ServiceKey::AttainedGpus;
  BERTH_TRY(options.quantum, params.duration("quantum"));
  if (options.quantum <= Duration::zero()) return params.wrong("quantum", "must be more than zero");
  return std::make_unique<Preemptive>(entry.name, options);
}

Made make_easy(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto kill, params.flag("kill_overrun"));
  return std::make_unique<Easy>(kill);
}

Result<double> promote_knob_of(const Params& params) {
  if (params.text("promote_knob") == "off") return std::numeric_limits<double>::infinity();
  return params.number("promote_knob", 0, 1e9);
}

Made make_tiresias(const PolicyEntry& entry, const Params& params) {
  TiresiasOptions options;
  options.gittins = entry.name == "tiresias-g";
  BERTH_TRY(options.thresholds, params.numbers("thresholds"));
  const auto& thresholds = options.thresholds;
  const bool rising =
      std::ranges::adjacent_find(thresholds, std::ranges::greater_equal{}) == thresholds.end();
  if (thresholds.empty() || thresholds.size() > 100 || thresholds.front() <= 0 ||
      thresholds.back() > kMaxInputSeconds || !rising) {
    return params.wrong("thresholds", "must be 1 to 100 rising GPU-seconds above zero");
  }
  BERTH_TRY(options.promote_knob, promote_knob_of(params));
  BERTH_TRY(options.min_interval, params.duration("min_interval"));
  BERTH_TRY_VOID(params.number("pack_limit", 0, 1));  // read by the placement `skew`
  BERTH_TRY(options.evict_for_consolidation, params.flag("evict_for_consolidation"));
  if (!options.gittins) return std::make_unique<Tiresias>(entry.name, options);
  BERTH_TRY(const auto history, params.integer("history", 1, 10'000'000));
  BERTH_TRY(const auto min_samples, params.integer("min_samples", 1, 10'000'000));
  BERTH_TRY(options.samples, params.numbers("samples"));
  BERTH_TRY(options.gittins_interval, params.duration("gittins_interval"));
  if (options.gittins_interval <= Duration::zero())
    return params.wrong("gittins_interval", "must be more than zero");
  options.history = static_cast<std::size_t>(history);
  options.min_samples = static_cast<std::size_t>(min_samples);
  return std::make_unique<Tiresias>(entry.name, options);
}

std::vector<ParamSpec> tiresias_params() {
  return {{"thresholds", "3200",
           "GPU-seconds at which a job falls to the next queue, rising, comma separated"},
          {"promote_knob", "off",
           "a job that waited this many times its run time goes back to the first queue"},
          {"min_interval", "0", "seconds between two passes at least"},
          {"pack_limit", "0.5", "with --placement skew: skew above which a model is consolidated"},
          {"evict_for_consolidation", "on",
           "a consolidated job that finds no nodes takes those of jobs in lower queues"}};
}

std::vector<ParamSpec> gittins_params() {
  std::vector<ParamSpec> params = tiresias_params();
  params.push_back({"history", "5000", "how many finished jobs the Gittins index looks back on"});
  params.push_back(
      {"min_samples", "30", "below this many finished jobs it behaves like tiresias-l"});
  params.push_back(
      {"samples", "", "GPU-seconds of jobs known from before the run, comma separated"});
  params.push_back(
      {"gittins_interval", "60", "seconds between two looks at the indices of running jobs"});
  return params;
}

std::vector<PolicyEntry> make_registry() {
  const ParamSpec gain{"preempt_gain", "0",
                       "seconds of work (x GPUs for srsf) a preemption must win at least"};
  const ParamSpec quantum{"quantum", "60",
                          "seconds between two looks at the order, aligned to time zero"};
  std::vector<PolicyEntry> entries{
      {.name = "fifo",
       .summary = "first come, first served; the first job that does not fit blocks the rest",
       .params = {pass_param("strict")},
       .make = make_list},
      {.name = "fifo-skip",
       .summary = "arrival order, but any job that fits may start",
       .params = {pass_param("skip")},
       .make = make_list},
      {.name = "sjf",
       .summary = "shortest estimated run time first",
       .params = {pass_param("skip")},
       .make = make_list},
      {.name = "smallest",
       .summary = "fewest GPUs first",
       .params = {pass_param("skip")},
       .make = make_list},
      {.name = "easy",
       .summary = "FIFO with backfill around one reservation for the head",
       .params = {{"kill_overrun", "off", "kill a job that outlives its estimate"}},
       .make = make_easy},
      conservative_entry(),
      capacity_entry(),
      drf_entry(),
      priority_entry(),
      fair_share_entry(),
      qssf_entry(),
      pai_entry(),
      philly_entry(),
      {.name = "srtf",
       .summary = "preemptive, least estimated work left first",
       .params = {gain},
       .make = make_shortest},
      {.name = "srsf",
       .summary = "preemptive, least estimated work left times GPUs first",
       .params = {gain},
       .make = make_shortest},
      {.name = "las",
       .summary = "preemptive, least time of holding GPUs first",
       .params = {quantum},
       .make = make_las,
       .test_settings = {{"quantum", "5"}}},
      {.name = "las-2d",
       .summary = "preemptive, least GPU-seconds held first",
       .params = {quantum},
       .make = make_las,
       .test_settings = {{"quantum", "5"}}},
      {.name = "edf",
       .summary =
           "preemptive, earliest deadline first, jobs without one behind in order of arrival",
       .params = {},
       .make = make_edf},
      {.name = "tiresias-l",
       .summary = "preemptive, queues by GPU-seconds attained, first come first served inside",
       .params = tiresias_params(),
       .make = make_tiresias,
       .test_settings = {{"thresholds", "9,30"}}},
      {.name = "tiresias-g",
       .summary = "preemptive, queues by GPU-seconds attained, Gittins index inside",
       .params = gittins_params(),
       .make = make_tiresias,
       .test_settings = {{"thresholds", "9,30"}, {"min_samples", "3"}}},
      agents_entry(),
      andreas_entry(),
      hived_entry(),
      sjf_ffs_entry(),
      sjf_bsbf_entry(),
      lucid_entry(),
      muri_l_entry(),
      muri_s_entry(),
      gandiva_entry(),
      gandiva_fair_entry(),
      antman_entry(),
      antman_lite_entry(),
      synergy_entry(),
      oasis_entry(),
      aonline_entry(),
      chronus_entry(),
      elasticflow_entry(),
      pollux_entry(),
      sia_entry(),
      rubick_entry(),
      optimus_entry(),
      themis_entry(),
      ftf_fractional_entry(),
      shockwave_entry(),
      hpo_entry(),
  };
  std::ranges::move(gavel_entries(), std::back_inserter(entries));
  return entries;
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
