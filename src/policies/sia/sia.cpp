#include "policies/sia/sia.h"

#include <algorithm>
#include <cmath>
#include "policies/goodput/goodput_params.h"

namespace berth::sia {

namespace {

constexpr double kRestartSteps = 20;

}  // namespace

void Sia::begin(const View& view) {
  book_.begin(view);
  seen_.resize(view.jobs.size());
  waiting_.begin(view.jobs.size());
  std::vector<std::int32_t> total(view.cluster.pools());
  for (const Node& node : view.cluster.cluster().nodes) total[node.pool.value] += node.gpus;
  for (std::uint32_t i = 0; i < total.size(); ++i)
    shapes_.push_back(configurations(view.cluster.largest_node(PoolId{i}), total[i]));
}

void Sia::on_arrival(const View& view, JobId job) {
  book_.add(view, job);
  waiting_.add(view, job, book_.least(job));
  clock_.stir(view.now);
}

void Sia::on_requeue(const View& view, JobId job) {
  waiting_.add(view, job, book_.least(job));
  clock_.stir(view.now);
}

void Sia::on_departure(const View& view, JobId job) {
  book_.remove(job);
  clock_.stir(view.now);
}

std::optional<Time> Sia::next_wakeup(const View& view) {
  if (!is_anybody_running_ || book_.active().empty()) return std::nullopt;
  return std::max(clock_.next(), view.now + Duration{1});
}

void Sia::decide(const View& view, Plan& plan, Rng&) {
  constexpr std::int64_t kLongestPause = 32;  // rounds
  constexpr std::int64_t kWhileLearning = 4;
  if (clock_.is_due(view.now)) {
    bool changed = book_.refresh(view);
    changed |= round(view, plan);
    clock_.rest(view.now, changed, book_.hears_noise() ? kWhileLearning : kLongestPause);
  }
  start_waiting(view, plan);
  note_gangs(plan);
}

/// Where only single GPUs are known of a type, its gangs are taken to scale as they did elsewhere,
/// or perfectly if it never was in one.
double Sia::goodput(const View& view, JobId job, PoolId pool, std::int32_t gpus) {
  const auto of = [&](PoolId where, std::int32_t size) {
    return book_.table(view, job, where).goodput(size, size > view.cluster.largest_node(where));
  };
  const bool is_known = options_.knowledge == Knowledge::All || gpus == 1 ||
                        ((seen_[job.value] >> pool.value) & 1U) != 0;
  if (is_known) return of(pool, gpus);
  for (const PoolId there : view.shape(job).pools) {
    if (((seen_[job.value] >> there.value) & 1U) == 0) continue;
    return bootstrapped(of(pool, 1), of(there, 1), of(there, gpus));
  }
  return of(pool, gpus) > 0 ? gpus * of(pool, 1) : 0;
}

Sia::Alike Sia::key_of(const View& view, const Plan& plan, JobId job) {
  const bool ran = view.jobs.first_start[job] != kNever;
  const double factor =
      ran ? restart_factor(to_seconds(view.now - view.jobs.submitted[job]), book_.restarts(job),
                           to_seconds(options_.goodput.restart))
          : 1;
  return {.table = &book_.table(view, job, view.shape(job).pools.front()),
          .shape = view.jobs.shape[job],
          .least = book_.least(job),
          .most = book_.most(job),
          .held = plan.gpus_of(job),
          .pool = plan.holds(job) ? plan.pool_of(job).value : 0,
          .restart = static_cast<std::int32_t>(std::lround(factor * kRestartSteps)),
          .seen = options_.knowledge == Knowledge::All ? 0 : seen_[job.value]};
}

/// Costs of every configuration the job may take.
void Sia::add_row(const View& view, const Alike& alike, Group& group) {
  const JobId job = group.jobs.front();
  Row& row = program_.rows.emplace_back();
  row.none = options_.costs.none;
  row.count = static_cast<std::int32_t>(group.jobs.size());
  const bool rigid = alike.least == alike.most && book_.range(job).is_fixed();
  std::vector<double> goodputs;
  double least = 0;
  const auto add = [&](PoolId pool, std::int32_t gpus) {
    const double value = goodput(view, job, pool, gpus);
    if (value <= 0) return;
    least = least > 0 ? std::min(least, value) : value;
    goodputs.push_back(value);
    row.options.push_back({pool.value, gpus, 0});
    group.pools.push_back(pool);
  };
  for (const PoolId pool : view.shape(job).pools) {
    if (rigid) {
      add(pool, alike.least);
      continue;
    }
    for (const Configuration& shape : shapes_[pool.value]) {
      if (shape.gpus >= alike.least && shape.gpus <= alike.most) add(pool, shape.gpus);
    }
  }
  for (std::size_t i = 0; i < goodputs.size(); ++i) {
    Option& option = row.options[i];
    double utility = goodputs[i] / least * (rigid ? option.gpus : 1);
    const bool stays = option.gpus == alike.held && option.type == alike.pool;
    if (!stays) utility *= alike.restart / kRestartSteps;
    option.cost = cost_of_utility(utility, options_.costs);
  }
}

/// Rows in the order of their first job; jobs that must not be touched keep their GPUs.
void Sia::build(const View& view, const Plan& plan) {
  program_.rows.clear();
  program_.capacity.clear();
  groups_.clear();
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    program_.capacity.push_back(view.cluster.usable_gpus(PoolId{i}));
  std::map<Alike, std::size_t> group_of;  // lookup only: its order is that of addresses
  std::vector<Alike> kinds;
  for (const JobId job : book_.active()) {
    if (plan.holds(job) && book_.is_pinned(view, job)) {
      program_.capacity[plan.pool_of(job).value] -= plan.gpus_of(job);
      continue;
    }
    const Alike alike = key_of(view, plan, job);
    const auto [entry, is_new] = group_of.try_emplace(alike, groups_.size());
    if (is_new) {
      groups_.emplace_back();
      kinds.push_back(alike);
    }
    groups_[entry->second].jobs.push_back(job);
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) add_row(view, kinds[g], groups_[g]);
}

/// The cheapest options of a row go to its first jobs.
bool Sia::round(const View& view, Plan& plan) {
  build(view, plan);
  if (program_.rows.empty()) return false;
  const Assignment assignment = solve(program_, options_.limits);
  std::vector<SizeWish> wishes;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::vector<std::size_t> order(program_.rows[g].options.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) { return program_.rows[g].options[i].cost; });
    std::size_t next = 0;
    for (const std::size_t i : order) {
      for (std::int32_t n = 0; n < assignment.taken[g][i]; ++n, ++next)
        wishes.push_back(
            {groups_[g].jobs[next], groups_[g].pools[i], program_.rows[g].options[i].gpus});
    }
    for (; next < groups_[g].jobs.size(); ++next) {
      const JobId job = groups_[g].jobs[next];
      if (plan.holds(job)) wishes.push_back({job, {}, 0});
    }
  }
  std::erase_if(wishes, [&](const SizeWish& wish) {
    return wish.gpus == plan.gpus_of(wish.job) &&
           (wish.gpus == 0 || wish.pool == plan.pool_of(wish.job));
  });
  std::ranges::sort(wishes, {}, &SizeWish::job);
  const bool moved = resizer_.apply(view, plan, wishes, Repack::SmallJobs);
  for (const JobId job : book_.active()) {
    if (plan.holds(job)) {
      book_.set_batch(view, plan, job);
    } else {
      waiting_.add(view, job, book_.least(job));
    }
  }
  return moved;
}

/// Jobs without GPUs, at their smallest size on whatever is free: they need not wait for a round.
void Sia::start_waiting(const View& view, Plan& plan) {
  waiting_.start(view, plan, [&](JobId job) {
    const auto& pools = view.shape(job).pools;
    const auto try_in = [&](PoolId pool) {
      return plan.try_start_sized(pool, job, book_.least(job), Reason::Order);
    };
    const bool is_kept = plan.try_keep(job);
    if (!is_kept && std::ranges::none_of(pools, try_in)) return false;
    book_.settle(view, plan, job, !is_kept);
    clock_.stir(view.now + Duration{1});
    return true;
  });
}

void Sia::note_gangs(const Plan& plan) {
  is_anybody_running_ =
      std::ranges::any_of(book_.active(), [&](JobId job) { return plan.holds(job); });
  if (options_.knowledge == Knowledge::All) return;
  for (const JobId job : book_.active()) {
    if (plan.gpus_of(job) > 1 && plan.pool_of(job).value < 64)
      seen_[job.value] |= std::uint64_t{1} << plan.pool_of(job).value;
  }
}

}  // namespace berth::sia

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  sia::Options options;
  BERTH_TRY(options.goodput, goodput_options(params));
  BERTH_TRY(options.interval, params.duration("interval"));
  if (options.interval <= Duration::zero())
    return params.wrong("interval", "must be more than zero");
  BERTH_TRY(options.costs.p, params.number("p", -100, 100));
  if (options.costs.p == 0) return params.wrong("p", "must not be zero");
  BERTH_TRY(options.costs.none, params.number("lambda", 0, 3000));
  BERTH_TRY(const std::int64_t iterations, params.integer("iterations", 1, 100'000));
  options.limits.iterations = static_cast<std::int32_t>(iterations);
  BERTH_TRY(const std::int64_t exact, params.integer("exact_jobs", 0, 10'000));
  options.limits.exact_jobs = static_cast<std::int32_t>(exact);
  BERTH_TRY(options.limits.search_nodes, params.integer("search_nodes", 0, 1'000'000'000));
  BERTH_TRY(const std::size_t known, params.choice("gangs", {"known", "bootstrapped"}));
  options.knowledge = known == 0 ? sia::Knowledge::All : sia::Knowledge::Bootstrapped;
  return std::make_unique<sia::Sia>(entry.name, options);
}

}  // namespace

PolicyEntry sia_entry() {
  std::vector<ParamSpec> params = goodput_params();
  const std::vector<ParamSpec> own{
      {"p", "-0.5", "power of the utilities: 1 = their sum, below zero = fairer"},
      {"lambda", "1.1", "what a job without GPUs costs"},
      {"gangs", "known",
       "known: goodput of gangs as the model says; bootstrapped: on a type where the job never had "
       "several GPUs as it scaled elsewhere"},
      {"iterations", "100", "steps of the prices per GPU type"},
      {"exact_jobs", "30", "jobs up to which the exact search is tried"},
      {"search_nodes", "20000", "it may visit"}};
  params.insert(params.end(), own.begin(), own.end());
  return {
      .name = "sia",
      .summary = "elastic, batch, GPUs and device type by goodput; an integer program every round",
      .params = std::move(params),
      .make = make};
}

}  // namespace berth
