#include "policies/agents/entry.h"

#include "policies/agents/agents.h"

namespace berth {

namespace {

Result<MigrationRule> migration_rule(const Params& params) {
  MigrationRule rule;
  BERTH_TRY(rule.least_gain, params.number("migration_gain", 0, 1));
  BERTH_TRY(const Duration least, params.duration("migration_least"));
  rule.least_seconds = to_seconds(least);
  BERTH_TRY(rule.pause, params.duration("migration_pause"));
  return rule;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  agents::AgentsOptions options;
  BERTH_TRY(const auto value,
            params.choice("value", {"fairness", "jct", "throughput", "deadline"}));
  options.value = static_cast<agents::Value>(value);
  BERTH_TRY(const auto leftover, params.choice("leftover", {"locality", "worst-off"}));
  options.leftover = static_cast<agents::Leftover>(leftover);
  BERTH_TRY(const bool payment, params.flag("payment"));
  options.payment = payment ? agents::Payment::Charged : agents::Payment::Free;
  BERTH_TRY(options.hidden, params.number("hidden", 0, 1));
  BERTH_TRY(options.interval, params.duration("interval"));
  BERTH_TRY(options.lease, params.duration("lease"));
  BERTH_TRY(options.switching_credit, params.number("switching_credit", 0, 0.99));
  BERTH_TRY(options.pod_devices, params.integer("pod_devices", 1, 1'000'000'000));
  BERTH_TRY(options.exchange, params.duration("exchange"));
  BERTH_TRY(options.defragment, params.flag("defragment"));
  BERTH_TRY(options.migration_interval, params.duration("migration_interval"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  BERTH_TRY(options.migration, migration_rule(params));
  if (options.interval <= Duration::zero())
    return params.wrong("interval", "must be more than zero");
  if (options.lease <= Duration::zero()) return params.wrong("lease", "must be more than zero");
  return std::make_unique<agents::Agents>(options);
}

}  // namespace

PolicyEntry agents_entry() {
  return {
      .name = "agents",
      .summary =
          "job agents bid for leases, arbiters sell cells by Nash welfare; placed by topology",
      .params =
          {{"value", "fairness", "what agents bid by: fairness, jct, throughput or deadline"},
           {"leftover", "locality",
            "who gets first what nobody bought: locality (whom its places hurt least), worst-off"},
           {"payment", "off", "hidden payment: a winner's lease is cut by what it cost the others"},
           {"hidden", "0.8", "part of the agents an offer is hidden from, the best-off ones"},
           {"interval", "60", "seconds between offers while jobs wait"},
           {"lease", "20m", "how long devices are granted before they are for sale again"},
           {"switching_credit", "0.05", "part by which an old holder's bid counts as better"},
           {"pod_devices", "2000", "devices of one arbiter at most; larger clusters have several"},
           {"exchange", "10", "seconds between exchanges of arbiters, at least"},
           {"defragment", "on", "move jobs together for a gang that is held back"},
           {"migration_interval", "5m", "how often agents look for better devices; 0 = never"},
           {"migration_cost", "60", "seconds a move takes"},
           {"migration_gain", "0.1", "part of the time left that a move must save"},
           {"migration_least", "30", "seconds that a move must save"},
           {"migration_pause", "30m", "a job moves at most once in this time"}},
      .make = make};
}

}  // namespace berth
