#include "policies/gavel/gavel.h"

#include <algorithm>
#include <array>

namespace berth::gavel {

void Gavel::begin(const View& view) {
  candidates_ = Candidates{view.cluster.pools()};
  fractions_.begin(view);
  turns_.begin(view);
}

void Gavel::on_arrival(const View& view, JobId job) {
  fractions_.add(view, job, candidates_);
  note_change(view);
}

void Gavel::on_departure(const View& view, JobId job) {
  turns_.leave(view, job, candidates_);
  candidates_.remove(job);
  note_change(view);
}

void Gavel::on_requeue(const View& view, JobId job) {
  turns_.lose(view, job, candidates_);
  note_change(view);
}

void Gavel::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  if (candidates_.size() == 0) rounds_.settle();
  if (!rounds_.is_due(view.now)) {
    if (options_.start == StartRule::AtOnce) turns_.start_waiting(pass, candidates_);
    return;
  }
  rounds_.hold(view.now);
  // Time is counted by the fractions under which it was spent, so before they change.
  turns_.count_time(view, candidates_);
  compute_if_due(view);
  std::vector<std::int64_t> gpus;
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    gpus.push_back(view.cluster.usable_gpus(PoolId{i}));
  const std::vector<Pick> kept = turns_.still_starting(view, candidates_);
  turns_.carry_out(pass, candidates_, candidates_.choose(gpus, kept));
  if (nothing_would_change(view)) rounds_.settle();
}

void Gavel::compute_if_due(const View& view) {
  const std::int64_t round = rounds_.number(view.now);
  if (!is_changed_ || (computed_ && round - *computed_ < options_.recompute_rounds)) return;
  fractions_.compute(view, candidates_);
  computed_ = round;
  is_changed_ = false;
}

/// Nobody runs, or everybody does and on the only type it should.
bool Gavel::nothing_would_change(const View& view) const {
  const auto running = turns_.running();
  if (running.empty()) return !is_changed_;
  if (is_changed_ || shares_devices()) return false;
  if (running.size() < candidates_.size()) return false;
  return view.cluster.pools() == 1 || std::ranges::all_of(running, [&](JobId job) {
           return candidates_.claim(candidates_.alone(job), *turns_.pool(job)).share > 1 - 1e-6;
         });
}

}  // namespace berth::gavel

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

bool has_cost(Objective objective) {
  return objective == Objective::Cost || objective == Objective::Slo;
}

Result<void> read_entities(const Params& params, gavel::FractionOptions& options) {
  using gavel::Entity;
  BERTH_TRY(options.entity, params.choice<Entity>("entity", {{"user", Entity::User},
                                                             {"group", Entity::Group},
                                                             {"queue", Entity::Queue}}));
  BERTH_TRY(const auto list, params.named_numbers("weights"));
  for (const auto& [name, numbers] : list) {
    if (numbers.size() != 1 || numbers[0] < 1e-3 || numbers[0] > 1e6)
      return params.wrong("weights", "must be NAME:weight with a weight from 0.001 to 1000000");
    options.weights.emplace_back(name, numbers[0]);
  }
  return {};
}

Result<gavel::FractionOptions> read_fractions(Objective objective, const Params& params) {
  using gavel::CostForm;
  using gavel::Speeds;
  gavel::FractionOptions options{.objective = objective};
  BERTH_TRY(options.carry, params.number("carry", 0, 1));
  BERTH_TRY(options.speeds, params.choice<Speeds>("speeds", {{"aware", Speeds::Aware},
                                                             {"agnostic", Speeds::Agnostic}}));
  BERTH_TRY(options.max_classes, params.whole<std::size_t>("max_classes", 1, 100'000));
  if (gavel::splits_equally(objective)) {
    BERTH_TRY(options.max_levels, params.whole("max_levels", 1, 1'000'000));
  }
  if (gavel::is_max_min(objective)) {
    BERTH_TRY(const bool shares, params.flag("space_sharing"));
    BERTH_TRY(const auto jobs, params.whole<std::size_t>("pair_jobs", 2, 500));
    options.pair_jobs = shares ? jobs : 0;
  }
  if (has_cost(objective)) {
    BERTH_TRY(options.cost, params.choice<CostForm>(
                                "form", {{"sum", CostForm::Sum}, {"ratio", CostForm::Ratio}}));
  }
  if (objective == Objective::Hierarchical) BERTH_TRY_VOID(read_entities(params, options));
  return options;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  const Objective objective = std::ranges::find(kPolicies, entry.name, &Named::name)->objective;
  gavel::Options options;
  BERTH_TRY(options.round, params.positive_duration("round"));
  BERTH_TRY(options.start, params.choice<StartRule>("start", {{"round", StartRule::InRounds},
                                                              {"now", StartRule::AtOnce}}));
  BERTH_TRY(options.recompute_rounds, params.integer("recompute", 1, 1'000'000));
  BERTH_TRY(options.fractions, read_fractions(objective, params));
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
    entries.push_back({.name = std::string(one.name),
                       .summary = std::string(one.summary),
                       .params = params_of(one.objective),
                       .make = make,
                       .test_settings = {{"round", "4"}}});
  }
  return entries;
}

}  // namespace berth
