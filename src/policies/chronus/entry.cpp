#include "policies/chronus/entry.h"

#include "policies/chronus/chronus.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  chronus::ChronusOptions options;
  BERTH_TRY(options.lease, params.duration("lease"));
  BERTH_TRY(options.restart, params.duration("restart"));
  if (options.lease <= options.restart) return params.wrong("lease", "must be longer than restart");
  BERTH_TRY(options.slack, params.number("slack", 1, 100));
  BERTH_TRY(options.grace, params.duration("grace"));
  BERTH_TRY(const auto unmet, params.choice("unmet", {"refuse", "best-effort"}));
  options.refuses = unmet == 0;
  BERTH_TRY(const auto late, params.choice("late", {"best-effort", "kill"}));
  options.kills_late = late == 1;
  BERTH_TRY(const auto key, params.choice("be_key", {"remaining", "attained"}));
  options.key = static_cast<chronus::BestEffortKey>(key);
  BERTH_TRY(options.starve_leases, params.integer("be_starve", 1, 1'000'000));
  BERTH_TRY(options.lends_padding, params.flag("lend_padding"));
  BERTH_TRY(const auto steps, params.integer("ls_iters", 0, 1'000'000));
  options.search_steps = static_cast<std::int32_t>(steps);
  options.move_cost = to_seconds(options.restart) / to_seconds(options.lease);
  if (params.text("mig_cost") != "auto") {
    BERTH_TRY(options.move_cost, params.number("mig_cost", 0, 1000));
  }
  BERTH_TRY(options.best_effort_in_program, params.flag("be_in_milp"));
  BERTH_TRY(const auto jobs, params.integer("exact_jobs", 0, 1000));
  options.effort.jobs = static_cast<std::size_t>(jobs);
  BERTH_TRY(options.effort.nodes, params.integer("solver_nodes", 1, 1'000'000'000));
  return std::make_unique<chronus::Chronus>(options);
}

}  // namespace

PolicyEntry chronus_entry() {
  return {
      .name = "chronus",
      .summary =
          "promises leases that meet deadlines or refuses at once; the rest shares what is left",
      .params =
          {{"lease", "20m", "length of a term; who runs is decided where one begins"},
           {"restart", "30", "seconds at the begin of a lease that saving and restarting may take"},
           {"slack", "1.05", "factor on the believed work left, against wrong estimates"},
           {"grace", "1h",
            "lateness that makes a soft deadline worthless; at most 100 terms are tried"},
           {"unmet", "refuse", "strict deadline that cannot be promised: refuse or best-effort"},
           {"late", "best-effort", "strict job that will be late after all: best-effort or kill"},
           {"be_key", "remaining",
            "order without deadline: remaining (work) or attained (service)"},
           {"be_starve", "36", "leases of waiting after which such a job goes first"},
           {"lend_padding", "on", "lend the GPUs that rounding up to blocks leaves idle"},
           {"be_in_milp", "off",
            "leases that can come later make way for short jobs without deadline"},
           {"ls_iters", "1000", "steps of the search for closer places, if distance costs speed"},
           {"mig_cost", "auto", "speed that moving a job there must gain; auto = restart / lease"},
           {"exact_jobs", "30", "jobs up to which the integer program decides; 0 = never"},
           {"solver_nodes", "200", "size of its search tree at most"}},
      .make = make};
}

}  // namespace berth
