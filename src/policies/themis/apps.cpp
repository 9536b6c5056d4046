#include "policies/themis/apps.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "policies/themis/leases.h"

namespace berth::themis {

void Apps::begin(const View& view) {
  pools_.resize(view.cluster.pools());
  rows_.resize(view.jobs.size());
}

AppId Apps::find_or_make(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  const auto is_given = [&](NameId name) { return !view.text(name).empty(); };
  std::optional<NameId> name;
  if (options_.app != AppOf::Job && is_given(request.study)) {
    name = request.study;
  } else if (options_.app == AppOf::StudyOrGroup && is_given(request.group)) {
    name = request.group;
  }
  const AppId fresh{static_cast<std::uint32_t>(apps_.size())};
  const AppId id = name ? by_name_.try_emplace(*name, fresh).first->second : fresh;
  if (id == fresh) apps_.push_back({});
  return id;
}

void Apps::add(const View& view, JobId job) {
  const AppId id = find_or_make(view, job);
  const ElasticRange range = elastic_range(view, job, options_.elastic);
  const std::int32_t most = range.most / range.least * range.least;
  const PoolId pool = view.shape(job).pools.front();
  const Level closest = view.believed().best_level(pool, most);
  JobRow& row = rows_[job];
  row.app = id;
  row.unit = range.least;
  row.most = most;
  row.since = view.now;
  row.alone =
      to_seconds(view.estimate(job)) / job_rate(view, job, pool, most, closest, options_.slowdown);
  App& app = apps_[id];
  if (app.jobs.empty()) {  // its life begins, or begins anew
    active_.change(view.now, +1);
    app.start = view.now;
    app.integral_at_start = active_.integral(view.now);
    app.alone_done = 0;
    app.since = view.now;
  }
  app.jobs.push_back(job);
  refresh(view, id);
}

void Apps::remove(const View& view, JobId job) {
  JobRow& row = rows_[job];
  App& app = apps_[row.app];
  row.held = 0;
  std::erase(app.jobs, job);
  if (view.jobs.state[job] == JobState::Completed)
    app.alone_done = std::max(app.alone_done, row.alone);
  if (!app.jobs.empty()) return refresh(view, row.app);
  withdraw(row.app);
  active_.change(view.now, -1);
}

void Apps::set_held(const View& view, JobId job, PoolId pool, std::int32_t gpus) {
  JobRow& row = rows_[job];
  if (gpus == 0 && row.held > 0) row.since = view.now;
  if (gpus != row.held) row.work_at_change = view.jobs.work_done(job, view.now);
  row.held = gpus;
  row.pool = pool;
  row.on_offer = false;
}

void Apps::put_on_offer(JobId job) {
  rows_[job].on_offer = true;
  pools_[rows_[job].pool].ended.push_back(job);
}

std::int64_t Apps::gpus_of_ended(PoolId pool) const noexcept {
  std::int64_t sum = 0;
  for (const JobId job : pools_[pool].ended) sum += rows_[job].held;
  return sum;
}

void Apps::close_offer(PoolId pool) {
  for (const JobId job : pools_[pool].ended) rows_[job].on_offer = false;
  pools_[pool].ended.clear();
}

/// A running job is resized within its lease only after some progress: where many apps want more,
/// every auction would restart them all and none would progress.
bool Apps::may_grow(const View& view, JobId job) const {
  return has_progressed(view, job, rows_[job].work_at_change, options_.lease);
}

void Apps::withdraw(AppId app) {
  for (std::uint32_t pool = 0; pool < pools_.size(); ++pool) pools_[PoolId{pool}].market.leave(app);
}

void Apps::refresh(const View& view, AppId id) {
  App& app = apps_[id];
  const bool was_starving = std::ranges::any_of(
      pools_, [&](const PoolRow& pool) { return pool.market.demand(id).is_starving; });
  withdraw(id);
  units_.assign(pools_.size(), 0);
  bool has_some = false;
  for (const JobId job : app.jobs) {
    const JobRow& row = rows_[job];
    const std::int32_t has = firm(job);
    has_some = has_some || has > 0;
    if (has + row.unit > row.most) continue;
    for (const PoolId pool : view.shape(job).pools) {
      if (has > 0 && pool != row.pool) continue;  // a gang lies in one pool
      std::int32_t& unit = units_[pool.value];
      unit = unit == 0 ? row.unit : std::min(unit, row.unit);
    }
  }
  if (has_some) {
    app.since = kNever;
    app.missed = 0;
  } else if (app.since == kNever) {
    app.since = view.now;
  }
  if (std::ranges::all_of(units_, [](std::int32_t unit) { return unit == 0; })) return;
  const double rho_now = has_some ? rho(view, id) : 0;
  for (std::uint32_t pool = 0; pool < units_.size(); ++pool) {
    if (units_[pool] == 0) continue;
    pools_[PoolId{pool}].market.enter(id, {.unit = units_[pool],
                                           .since = app.since,
                                           .rho = rho_now,
                                           .is_starving = was_starving && !has_some});
  }
}

void Apps::note_miss(const View& view, PoolId pool, AppId id) {
  App& app = apps_[id];
  // At most one per lease counts: when many short jobs end at once, that is one missed chance.
  if (app.missed > 0 && view.now - app.last_miss < options_.lease) return;
  ++app.missed;
  app.last_miss = view.now;
  if (app.missed >= options_.starve_leases) pools_[pool].market.set_starving(id);
}

Stake Apps::stake(const View& view, AppId id, PoolId pool) const {
  std::vector<JobId> jobs = apps_[id].jobs;
  std::ranges::sort(jobs, {}, [&](JobId job) { return std::tuple(rows_[job].since, job); });
  std::vector<SplitJob> split;
  std::vector<ViewedTimes::Row> times;
  for (const JobId job : jobs) {
    const JobRow& row = rows_[job];
    const std::int32_t has = firm(job);
    const auto& pools = view.shape(job).pools;
    const bool accepts = std::ranges::find(pools, pool) != pools.end();
    split.push_back(
        {.unit = row.unit,
         .most = row.most,
         .held = has,
         .can_grow = accepts && (has == 0 || (row.pool == pool && may_grow(view, job)))});
    const double left = to_seconds(view.estimated_left(job));
    times.push_back({.job = job,
                     .pool = has > 0 ? row.pool : (accepts ? pool : pools.front()),
                     .left = left,
                     .overrun = left > 0 ? 0 : to_seconds(options_.lease)});
  }
  auto viewed = std::make_unique<ViewedTimes>(view, options_.slowdown, std::move(times));
  AppSplit as_split{std::move(split), *viewed};
  return {id, std::move(jobs), std::move(viewed), std::move(as_split)};
}

double Apps::elapsed(const View& view, AppId app) const {
  return to_seconds(view.now - apps_[app].start);
}

double Apps::ideal(const View& view, AppId id) const {
  const App& app = apps_[id];
  double alone = app.alone_done;
  for (const JobId job : app.jobs) alone = std::max(alone, rows_[job].alone);
  const double average = active_.average(app.start, app.integral_at_start, view.now);
  return std::max(alone, 1e-6) * std::max(1.0, average);
}

double Apps::rho(const View& view, AppId app) const {
  const Stake now = stake(view, app, PoolId{0});  // any pool will do: nothing is bid for
  return (elapsed(view, app) + now.split.seconds_left()) / ideal(view, app);
}

}  // namespace berth::themis
