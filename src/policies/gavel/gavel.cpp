#include "policies/gavel/gavel.h"

#include <algorithm>
#include <array>

namespace berth::gavel {

Need Gavel::needs() const noexcept {
  switch (options_.objective) {
    case Objective::Ftf:
    case Objective::Makespan:
    case Objective::Sjf: return Need::Profile | Need::RunTime;
    case Objective::Slo: return Need::Profile | Need::RunTime | Need::Deadline;
    default: return Need::Profile;
  }
}

void Gavel::begin(const View& view) {
  rows_.resize(view.jobs.size());
  book_ = RoundBook{view.cluster.pools()};
  rule_ = {.objective = options_.objective,
           .cost = options_.cost,
           .prices = {},
           .entity_weights = {},
           .max_levels = options_.max_levels};
  for (const DeviceType& device : view.cluster.cluster().pools)
    rule_.prices.push_back(price_of(device));
}

std::uint32_t Gavel::kind_of(const View& view, JobId job) {
  const auto next = static_cast<std::uint32_t>(kinds_.size());
  const auto [entry, is_new] =
      kind_index_.try_emplace({view.jobs.profile[job], view.jobs.reference[job],
                               view.jobs.batch[job], view.jobs.shape[job]},
                              next);
  if (!is_new) return entry->second;
  Kind& kind = kinds_.emplace_back();
  kind.gpus = view.gpus(job);
  kind.rates.resize(view.cluster.pools());
  for (const PoolId pool : view.shape(job).pools) {
    Standing standing;
    standing.profile = view.jobs.profile[job];
    standing.pool = pool;
    standing.reference = view.jobs.reference[job];
    standing.gpus = standing.wanted = kind.gpus;
    standing.batch = view.jobs.batch[job];
    standing.level = view.believed().best_level(pool, kind.gpus);
    kind.rates[pool.value] = options_.agnostic ? 1 : view.believed().alone(standing);
  }
  return next;
}

std::uint32_t Gavel::entity_of(const View& view, JobId job) {
  if (options_.objective != Objective::Hierarchical) return 0;
  const JobRequest& request = view.request(job);
  const NameId name = options_.entity == Entity::User    ? request.user
                      : options_.entity == Entity::Group ? request.group
                                                         : request.queue;
  const auto next = static_cast<std::uint32_t>(rule_.entity_weights.size());
  const auto [entry, is_new] = entity_index_.try_emplace(name, next);
  if (!is_new) return entry->second;
  const auto given =
      std::ranges::find(options_.weights, view.text(name), &std::pair<std::string, double>::first);
  rule_.entity_weights.push_back(given == options_.weights.end() ? 1 : given->second);
  return next;
}

/// 0 while too few devices of the type are up.
double Gavel::rate(const View& view, const Kind& kind, std::size_t type) const {
  const PoolId pool{static_cast<std::uint32_t>(type)};
  return view.cluster.usable_gpus(pool) >= kind.gpus ? kind.rates[type] : 0;
}

void Gavel::on_arrival(const View& view, JobId job) {
  Row& row = rows_[job.value];
  row.kind = kind_of(view, job);
  row.entity = entity_of(view, job);
  row.at = book_.add({.job = job, .partner = {}, .gpus = view.gpus(job)});
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    book_.claim(row.at, PoolId{i}).rate = rate(view, kinds_[row.kind], i);
  note_change(view);
}

void Gavel::remove_candidate(std::uint32_t at) {
  book_.remove(at);
  if (at < book_.size() && !book_[at].partner) rows_[book_[at].job.value].at = at;
}

void Gavel::on_departure(const View& view, JobId job) {
  Row& row = rows_[job.value];
  if (row.pool) book_.receive_gone(*row.pool, to_seconds(view.jobs.held[job] - row.attained));
  remove_candidate(row.at);
  if (options_.space_sharing) {
    for (std::size_t i = book_.size(); i-- > 0;) {
      const Candidate& other = book_[static_cast<std::uint32_t>(i)];
      if (other.partner && (other.job == job || *other.partner == job))
        remove_candidate(static_cast<std::uint32_t>(i));
    }
  }
  row.pool.reset();
  note_change(view);
}

void Gavel::on_requeue(const View& view, JobId job) {
  count_time(view, job);
  rows_[job.value].pool.reset();
  note_change(view);
}

/// What a job ran in a pair counts for the pair, once.
void Gavel::count_time(const View& view, JobId job) {
  Row& row = rows_[job.value];
  const Duration attained = view.jobs.attained(job, view.now);
  const double seconds = to_seconds(attained - row.attained);
  row.attained = attained;
  if (!row.pool) return;
  if (!row.partner) return book_.receive(row.at, *row.pool, seconds);
  if (*row.partner < job) return;
  for (std::uint32_t i = 0; i < book_.size(); ++i) {
    if (book_[i].partner == row.partner && book_[i].job == job)
      return book_.receive(i, *row.pool, seconds);
  }
}

void Gavel::count_time(const View& view) {
  book_.elapse(to_seconds(view.now - last_round_));
  std::erase_if(running_, [&](JobId job) { return !rows_[job.value].pool; });
  for (const JobId job : running_) count_time(view, job);
  last_round_ = view.now;
}

bool Gavel::is_due(const View& view) const {
  if (!is_changed_) return false;
  return !computed_ || rounds_.number(view.now) - *computed_ >= options_.recompute_rounds;
}

std::optional<Time> Gavel::next_wakeup(const View& view) { return rounds_.wakeup(view.now); }

void Gavel::decide(const View& view, Plan& plan, Rng&) {
  if (book_.size() == 0) rounds_.settle();
  if (!rounds_.is_due(view.now)) {
    if (options_.start == StartRule::AtOnce) start_waiting(view, plan);
    return;
  }
  rounds_.hold(view.now);
  count_time(view);
  if (is_due(view)) compute_shares(view);
  std::vector<std::int64_t> gpus;
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    gpus.push_back(view.cluster.usable_gpus(PoolId{i}));
  carry_out(view, plan, book_.choose(gpus, still_starting(view)));
  remember_turns(view, plan);
  if (nothing_would_change(view)) rounds_.settle();
}

/// Who still pays for its start goes on: else a round below that cost would be the end of all
/// progress.
std::vector<Pick> Gavel::still_starting(const View& view) const {
  std::vector<Pick> kept;
  for (const JobId job : running_) {
    const Row& row = rows_[job.value];
    if (!row.partner && view.jobs.work_from[job] >= view.now) kept.push_back({row.at, *row.pool});
  }
  return kept;
}

/// Nobody runs, or everybody does and on the only type it should.
bool Gavel::nothing_would_change(const View& view) const {
  if (running_.empty()) return !is_changed_;
  if (is_changed_ || options_.space_sharing) return false;
  if (running_.size() < book_.size()) return false;
  return view.cluster.pools() == 1 || std::ranges::all_of(running_, [&](JobId job) {
           const Row& row = rows_[job.value];
           return book_.claim(row.at, *row.pool).share > 1 - 1e-6;
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
