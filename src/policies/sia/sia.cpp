#include "policies/sia/sia.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace berth::sia {

namespace {

constexpr double kRestartSteps = 20;

}  // namespace

void Sia::begin(const View& view) {
  GoodputPolicy::begin(view);
  seen_.resize(view.jobs.size());
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) {
    const auto total = static_cast<std::int32_t>(view.cluster.cluster().total_gpus(PoolId{i}));
    shapes_.push_back(configurations(view.cluster.largest_node(PoolId{i}), total));
  }
}

void Sia::decide(const View& view, Plan& plan, Rng& rng) {
  GoodputPolicy::decide(view, plan, rng);
  if (options_.knowledge == Knowledge::Bootstrapped) note_gangs(plan);
}

void Sia::note_gangs(const Plan& plan) {
  for (const JobId job : jobs().active()) {
    if (plan.gpus_of(job) > 1 && plan.pool_of(job).value < 64)
      seen_[job] |= std::uint64_t{1} << plan.pool_of(job).value;
  }
}

/// Where only single GPUs are known of a type, its gangs are taken to scale as they did elsewhere,
/// or perfectly if the job never ran as a gang.
double Sia::goodput_of(const View& view, JobId job, PoolId pool, std::int32_t gpus) {
  const auto of = [&](PoolId where, std::int32_t size) {
    return jobs().table(view, job, where).goodput(size, size > view.cluster.largest_node(where));
  };
  if (options_.knowledge == Knowledge::All || gpus == 1 || has_seen(job, pool))
    return of(pool, gpus);
  for (const PoolId there : view.shape(job).pools) {
    if (has_seen(job, there)) return bootstrapped(of(pool, 1), of(there, 1), of(there, gpus));
  }
  return of(pool, gpus) > 0 ? gpus * of(pool, 1) : 0;
}

Sia::Alike Sia::key_of(const View& view, const Plan& plan, JobId job) {
  double factor = 1;
  if (view.jobs.first_start[job] != kNever) {
    factor = move_factor(to_seconds(view.now - view.jobs.submitted[job]), jobs().restarts(job),
                         to_seconds(options_.base.restart));
  }
  return {.table = &jobs().table(view, job, view.shape(job).pools.front()),
          .most = jobs().most(job),
          .held = plan.gpus_of(job),
          .pool = plan.holds(job) ? plan.pool_of(job) : PoolId{},
          .restart = static_cast<std::int32_t>(std::lround(factor * kRestartSteps)),
          .seen = options_.knowledge == Knowledge::All ? 0 : seen_[job]};
}

/// Costs of every configuration the jobs of the group may take.
void Sia::add_row(const View& view, Group& group) {
  const JobId job = group.jobs.front();
  const std::int32_t fewest = jobs().least(job);
  Row& row = program_.rows.emplace_back();
  row.none = options_.costs.none;
  row.count = static_cast<std::int32_t>(group.jobs.size());
  const bool rigid = fewest == group.alike.most && jobs().range(job).is_fixed();
  std::vector<double> goodputs;
  double least = 0;
  const auto add = [&](PoolId pool, std::int32_t gpus) {
    const double value = goodput_of(view, job, pool, gpus);
    if (value <= 0) return;
    least = least > 0 ? std::min(least, value) : value;
    goodputs.push_back(value);
    row.options.push_back({pool.value, gpus, 0});
    group.pools.push_back(pool);
  };
  for (const PoolId pool : view.shape(job).pools) {
    if (rigid) {
      add(pool, fewest);
      continue;
    }
    for (const Configuration& shape : shapes_[pool]) {
      if (shape.gpus >= fewest && shape.gpus <= group.alike.most) add(pool, shape.gpus);
    }
  }
  // Utilities are relative to the worst configuration, so that a large model does not outbid a
  // small one. A rigid job has but one size: what it gets done counts by its GPUs.
  for (std::size_t i = 0; i < goodputs.size(); ++i) {
    Option& option = row.options[i];
    double utility = goodputs[i] / least * (rigid ? option.gpus : 1);
    const bool stays = option.gpus == group.alike.held && group.pools[i] == group.alike.pool;
    if (!stays) utility *= group.alike.restart / kRestartSteps;
    option.cost = cost_of_utility(utility, options_.costs);
  }
}

/// Rows in the order of their first job; jobs that must not be touched keep their GPUs.
void Sia::build_program(const View& view, const Plan& plan) {
  program_.rows.clear();
  program_.capacity.clear();
  groups_.clear();
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    program_.capacity.push_back(view.cluster.usable_gpus(PoolId{i}));
  std::map<Alike, std::size_t> group_of;  // lookup only: its order is that of addresses
  for (const JobId job : jobs().active()) {
    if (plan.holds(job) && jobs().is_pinned(view, job)) {
      program_.capacity[plan.pool_of(job).value] -= plan.gpus_of(job);
      continue;
    }
    const Alike alike = key_of(view, plan, job);
    const auto [entry, is_new] = group_of.try_emplace(alike, groups_.size());
    if (is_new) groups_.push_back({.alike = alike, .jobs = {}, .pools = {}});
    groups_[entry->second].jobs.push_back(job);
  }
  for (Group& group : groups_) add_row(view, group);
}

/// What the program assigns and jobs do not hold yet, by job. The cheapest options of a row go to
/// its first jobs.
std::vector<goodput::SizeWish> Sia::wishes(const Plan& plan) const {
  const Assignment assignment = solve(program_, options_.limits);
  std::vector<goodput::SizeWish> wishes;
  const auto wish = [&](JobId job, PoolId pool, std::int32_t gpus) {
    const bool is_so = gpus == plan.gpus_of(job) && (gpus == 0 || pool == plan.pool_of(job));
    if (!is_so) wishes.push_back({job, pool, gpus});
  };
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto& [alike, jobs, pools] = groups_[g];
    const std::vector<Option>& options = program_.rows[g].options;
    std::vector<std::size_t> order(options.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return options[i].cost; });
    auto next = jobs.begin();
    for (const std::size_t i : order) {
      for (std::int32_t n = 0; n < assignment.taken[g][i]; ++n)
        wish(*next++, pools[i], options[i].gpus);
    }
    while (next != jobs.end()) wish(*next++, {}, 0);
  }
  std::ranges::sort(wishes, {}, &goodput::SizeWish::job);
  return wishes;
}

bool Sia::hold_round(Pass& pass) {
  build_program(pass.view, pass.plan);
  if (program_.rows.empty()) return false;
  const bool moved = resizer().apply(pass, wishes(pass.plan), goodput::Repack::SmallJobs);
  set_batches(pass);
  return moved;
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options;
  SolveLimits& limits = options.limits;
  BERTH_TRY(options.base, goodput::read_options(params));
  BERTH_TRY(options.costs.p, params.number("p", -100, 100));
  if (options.costs.p == 0) return params.wrong("p", "must not be zero");
  BERTH_TRY(options.costs.none, params.number("lambda", 0, 3000));
  BERTH_TRY(limits.iterations, params.whole("iterations", 1, 100'000));
  BERTH_TRY(limits.exact_jobs, params.whole("exact_jobs", 0, 10'000));
  BERTH_TRY(limits.search_nodes, params.integer("search_nodes", 0, 1'000'000'000));
  BERTH_TRY(options.knowledge,
            params.choice<Knowledge>(
                "gangs", {{"known", Knowledge::All}, {"bootstrapped", Knowledge::Bootstrapped}}));
  return std::make_unique<Sia>(entry.name, options);
}

}  // namespace

}  // namespace berth::sia

namespace berth {

PolicyEntry sia_entry() {
  return {
      .name = "sia",
      .summary = "elastic, batch, GPUs and device type by goodput; an integer program every round",
      .params = goodput::params_with(
          {{"p", "-0.5", "power of the utilities: 1 = their sum, below zero = fairer"},
           {"lambda", "1.1", "what a job without GPUs costs"},
           {"gangs", "known",
            "known: goodput of gangs as the model says; bootstrapped: on a type where the job "
            "never had several GPUs as it scaled elsewhere"},
           {"iterations", "100", "steps of the prices per GPU type"},
           {"exact_jobs", "30", "jobs up to which the exact search is tried"},
           {"search_nodes", "20000", "it may visit"}}),
      .make = sia::make,
      .test_settings = {
          {"interval", "2"}, {"restart", "1"}, {"max_gpus", "4"}, {"elastic", "all"}}};
}

}  // namespace berth
