#include "policies/registry.h"

#include <fmt/format.h>

#include "base/suggest.h"
#include "policies/easy/easy.h"
#include "policies/list_order/list_order.h"
#include "policies/preemptive/preemptive.h"

namespace berth {

namespace {

using Made = Result<std::unique_ptr<Policy>>;

ParamSpec pass_param(std::string default_value) {
  return {"pass", std::move(default_value), "strict: stop at the first job that does not fit; skip: try the next"};
}

Made make_list(const PolicyEntry& entry, const Params& params) {
  BERTH_TRY(const auto pass, params.choice("pass", {"strict", "skip"}));
  const ListKey key = entry.name == "sjf"        ? ListKey::RunTime
                      : entry.name == "smallest" ? ListKey::Gpus
                                                 : ListKey::Arrival;
  return std::make_unique<ListOrder>(entry.name, key, pass == 0 ? PassRule::Strict : PassRule::Skip);
}

Made make_shortest(const PolicyEntry& entry, const Params& params) {
  PreemptiveOptions options;
  options.key = entry.name == "srtf" ? ServiceKey::WorkLeft : ServiceKey::WorkLeftGpus;
  BERTH_TRY(options.preempt_gain, params.duration("preempt_gain"));
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

std::vector<PolicyEntry> make_registry() {
  const ParamSpec gain{"preempt_gain", "0", "seconds of work (x GPUs for srsf) a preemption must win at least"};
  const ParamSpec quantum{"quantum", "60", "seconds between two looks at the order, aligned to time zero"};
  return {
      {"fifo", "first come, first served; the first job that does not fit blocks the rest", Need::Nothing, false,
       {pass_param("strict")}, make_list},
      {"fifo-skip", "arrival order, but any job that fits may start", Need::Nothing, false, {pass_param("skip")}, make_list},
      {"sjf", "shortest estimated run time first", Need::RunTime, false, {pass_param("skip")}, make_list},
      {"smallest", "fewest GPUs first", Need::Nothing, false, {pass_param("skip")}, make_list},
      {"easy", "FIFO with backfill around one reservation for the head", Need::RunTime, false,
       {{"kill_overrun", "off", "kill a job that outlives its estimate"}}, make_easy},
      {"srtf", "preemptive, least estimated work left first", Need::RunTime, true, {gain}, make_shortest},
      {"srsf", "preemptive, least estimated work left times GPUs first", Need::RunTime, true, {gain}, make_shortest},
      {"las", "preemptive, least time of holding GPUs first", Need::Nothing, true, {quantum}, make_las},
      {"las-2d", "preemptive, least GPU-seconds held first", Need::Nothing, true, {quantum}, make_las},
  };
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

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Settings& settings) {
  BERTH_TRY(const PolicyEntry* entry, find_policy(name));
  BERTH_TRY(const Params params, Params::make(entry->name, entry->params, settings));
  return entry->make(*entry, params);
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
  return text.empty() ? "nothing" : text;
}

}  // namespace berth
