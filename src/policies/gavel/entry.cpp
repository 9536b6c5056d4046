#include "policies/gavel/entry.h"

#include <algorithm>
#include <array>

#include "policies/gavel/gavel.h"

namespace berth {

namespace {

using gavel::Objective;

struct Named {
  std::string_view name;
  Objective objective;
  std::string_view summary;
};
constexpr std::array kPolicies{
    Named{"gavel-las", Objective::Las,
          "rounds; equal progress by what each job gains on each device type (max-min)"},
    Named{"gavel-ftf", Objective::Ftf,
          "rounds; equal finish times against a part of the cluster to oneself, by device type"},
    Named{"gavel-makespan", Objective::Makespan,
          "rounds; all jobs done as early as possible, by device type"},
    Named{"gavel-cost", Objective::Cost, "rounds; most work per dollar, by device type"},
    Named{"gavel-slo", Objective::Slo,
          "rounds; rates that deadlines need, then most work per dollar"},
    Named{"gavel-hierarchical", Objective::Hierarchical,
          "rounds; equal parts for users or groups, then for their jobs, by device type"},
    Named{"gavel-fifo", Objective::Fifo, "rounds; earlier jobs weigh more, by device type"},
    Named{"gavel-sjf", Objective::Sjf, "rounds; shorter jobs weigh more, by device type"},
    Named{"gavel-throughput", Objective::Throughput,
          "rounds; most work in sum, by device type; unfair"},
};

Objective objective_of(std::string_view name) {
  return std::ranges::find(kPolicies, name, &Named::name)->objective;
}

bool has_cost(Objective objective) {
  return objective == Objective::Cost || objective == Objective::Slo;
}

Result<void> read_entities(const Params& params, gavel::Options& options) {
  BERTH_TRY(const auto entity, params.choice("entity", {"user", "group", "queue"}));
  options.entity = static_cast<gavel::Entity>(entity);
  BERTH_TRY(const auto list, params.named_numbers("weights"));
  for (const auto& [name, numbers] : list) {
    if (numbers.size() != 1 || numbers[0] < 1e-3 || numbers[0] > 1e6)
      return params.wrong("weights", "must be NAME:weight with a weight from 0.001 to 1000000");
    options.weights.emplace_back(name, numbers[0]);
  }
  return {};
}

Result<void> read_sharing(const Params& params, gavel::Options& options) {
  BERTH_TRY(options.space_sharing, params.flag("space_sharing"));
  BERTH_TRY(const auto jobs, params.integer("pair_jobs", 2, 500));
  options.pair_jobs = static_cast<std::size_t>(jobs);
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  gavel::Options options;
  options.objective = objective_of(entry.name);
  BERTH_TRY(options.round, params.duration("round"));
  if (options.round <= Duration::zero()) return params.wrong("round", "must be more than zero");
  BERTH_TRY(const auto start, params.choice("start", {"round", "now"}));
  options.start = static_cast<StartRule>(start);
  BERTH_TRY(options.recompute_rounds, params.integer("recompute", 1, 1'000'000));
  BERTH_TRY(options.carry, params.number("carry", 0, 1));
  BERTH_TRY(const auto speeds, params.choice("speeds", {"aware", "agnostic"}));
  options.agnostic = speeds == 1;
  BERTH_TRY(const auto classes, params.integer("max_classes", 1, 100'000));
  options.max_classes = static_cast<std::size_t>(classes);
  if (gavel::splits_equally(options.objective)) {
    BERTH_TRY(const auto levels, params.integer("max_levels", 1, 1'000'000));
    options.max_levels = static_cast<int>(levels);
  }
  if (gavel::is_max_min(options.objective)) BERTH_TRY_VOID(read_sharing(params, options));
  if (has_cost(options.objective)) {
    BERTH_TRY(const auto form, params.choice("form", {"sum", "ratio"}));
    options.cost = static_cast<gavel::CostForm>(form);
  }
  if (options.objective == Objective::Hierarchical) BERTH_TRY_VOID(read_entities(params, options));
  return std::make_unique<gavel::Gavel>(entry.name, std::move(options));
}

std::vector<ParamSpec> params_of(Objective objective) {
  std::vector<ParamSpec> params{
      {"round", "360", "seconds of a round, aligned to time zero"},
      {"start", "round",
       "of a job that waits beside free devices: round: with the next round; now: at once", "now"},
      {"recompute", "2", "rounds between two computations of the fractions at least"},
      {"carry", "0", "part of the time received that still counts after a computation, 0 to 1"},
      {"speeds", "aware", "aware: what each job gains on each type; agnostic: all types equal"},
      {"max_classes", "400", "kinds of jobs a program tells apart"}};
  if (gavel::splits_equally(objective))
    params.push_back({"max_levels", "32", "levels of water-filling before the rest is maximised"});
  if (gavel::is_max_min(objective)) {
    params.push_back({"space_sharing", "off", "let two jobs share devices where both gain"});
    params.push_back({"pair_jobs", "64", "with more jobs than this nobody shares"});
  }
  if (has_cost(objective))
    params.push_back(
        {"form", "sum", "sum: of each job's work per dollar; ratio: all work over all dollars"});
  if (objective == Objective::Hierarchical) {
    params.push_back({"entity", "user", "who gets equal parts first: user, group or queue"});
    params.push_back({"weights", "", "NAME:weight of an entity, comma separated; others have 1"});
  }
  return params;
}

}  // namespace

std::vector<PolicyEntry> gavel_entries() {
  std::vector<PolicyEntry> entries;
  for (const Named& one : kPolicies) {
    gavel::Options options;
    options.objective = one.objective;
    entries.push_back({.name = std::string(one.name),
                       .summary = std::string(one.summary),
                       .params = params_of(one.objective),
                       .make = make});
  }
  return entries;
}

}  // namespace berth
