#include "policies/synergy/entry.h"

#include "policies/synergy/synergy.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  SynergyOptions options;
  BERTH_TRY(const auto order, params.choice("order", {"fifo", "srtf", "las", "ftf"}));
  options.order = static_cast<SynergyOrder>(order);
  BERTH_TRY(const auto mode, params.choice("mode", {"tune", "greedy", "proportional", "opt"}));
  options.optimal_demands = mode == 3;
  options.mode = options.optimal_demands ? SynergyMode::Tune : static_cast<SynergyMode>(mode);
  BERTH_TRY(options.solver_nodes, params.integer("solver_nodes", 1, 1'000'000'000));
  BERTH_TRY(options.round, params.duration("round"));
  if (options.round <= Duration::zero()) return params.wrong("round", "must be more than zero");
  BERTH_TRY(const auto start, params.choice("start", {"round", "now"}));
  options.start = static_cast<StartRule>(start);
  return std::make_unique<Synergy>(entry.name, options);
}

}  // namespace

PolicyEntry synergy_entry() {
  return {
      .name = "synergy",
      .summary = "rounds of any order; cores by how much each job gains, none below its GPU share",
      .params =
          {{"order", "fifo", "fifo, srtf, las or ftf (finish-time fairness)"},
           {"mode", "tune",
            "tune, greedy (demand or nothing), proportional, or opt (demands by integer program)"},
           {"round", "5m", "seconds between two decisions, aligned to time zero"},
           {"start", "round",
            "of a job that waits beside free devices: round: with the next round; now: at once",
            "now"},
           {"solver_nodes", "1000", "opt: size of the search tree at most"}},
      .make = make};
}

}  // namespace berth
