#include "policies/agents/entry.h"

#include "policies/agents/agents.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  agents::AgentsOptions options;
  BERTH_TRY(const auto value,
            params.choice("value", {"fairness", "jct", "throughput", "deadline"}));
  options.value = static_cast<agents::Value>(value);
  BERTH_TRY(options.hidden, params.number("hidden", 0, 1));
  BERTH_TRY(options.interval, params.duration("interval"));
  BERTH_TRY(options.lease, params.duration("lease"));
  BERTH_TRY(options.switching_credit, params.number("switching_credit", 0, 0.99));
  BERTH_TRY(options.migration_interval, params.duration("migration_interval"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  if (options.interval <= Duration::zero())
    return params.wrong("interval", "must be more than zero");
  if (options.lease <= Duration::zero()) return params.wrong("lease", "must be more than zero");
  return std::make_unique<agents::Agents>(options);
}

}  // namespace

PolicyEntry agents_entry() {
  return {"agents",
          "job agents bid for leases, arbiters sell cells by Nash welfare; placed by topology",
          Need::RunTime | Need::Deadline | Need::Profile,
          true,
          {{"value", "fairness", "what agents bid by: fairness, jct, throughput or deadline"},
           {"hidden", "0.8", "part of the agents an offer is hidden from, the best-off ones"},
           {"interval", "60", "seconds between offers while jobs wait"},
           {"lease", "20m", "how long devices are granted before they are for sale again"},
           {"switching_credit", "0.05", "part by which an old holder's bid counts as better"},
           {"migration_interval", "5m", "how often agents look for closer devices; 0 = never"},
           {"migration_cost", "60", "seconds a move to closer devices takes"}},
          make};
}

}  // namespace berth
