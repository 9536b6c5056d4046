#include "policies/themis/themis.h"

#include <algorithm>

#include "base/rounds.h"
#include "policies/themis/ftf_rounds.h"

namespace berth::themis {

void Themis::begin(const View& view) {
  pools_.resize(view.cluster.pools());
  jobs_.resize(view.jobs.size());
}

AppId Themis::app_of(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  const auto given = [&](NameId name) { return !view.text(name).empty(); };
  std::optional<NameId> name;
  if (options_.app != AppOf::Job && given(request.study)) {
    name = request.study;
  } else if (options_.app == AppOf::StudyOrGroup && given(request.group)) {
    name = request.group;
  }
  const AppId fresh{static_cast<std::uint32_t>(apps_.size())};
  if (!name) {
    apps_.emplace_back();
    return fresh;
  }
  const auto [entry, is_new] = app_of_name_.try_emplace(*name, fresh);
  if (is_new) apps_.emplace_back();
  return entry->second;
}

void Themis::on_arrival(const View& view, JobId job) {
  const AppId id = app_of(view, job);
  JobRow& row = jobs_[job.value];
  const ElasticRange range = elastic_range(view, job, options_.elastic);
  row.app = id;
  row.unit = range.least;
  row.most = range.most / range.least * range.least;
  row.since = view.now;
  const PoolId pool = view.shape(job).pools.front();
  row.alone = to_seconds(view.estimate(job)) / job_rate(view, job, pool, row.most,
                                                        view.believed().best_level(pool, row.most),
                                                        options_.slowdown);
  if (app(id).jobs.empty()) {  // its life begins, or begins anew
    active_.change(view.now, +1);
    app(id).start = view.now;
    app(id).integral_at_start = active_.integral(view.now);
    app(id).alone_done = 0;
    app(id).since = view.now;
  }
  app(id).jobs.push_back(job);
  refresh(view, id);
  for (const PoolId each : view.shape(job).pools) {
    PoolRow& row_of_pool = pools_[each.value];
    row_of_pool.is_dirty |= options_.auction_on_arrival || leases_.empty();
  }
}

void Themis::on_departure(const View& view, JobId job) {
  JobRow& row = jobs_[job.value];
  App& owner = app(row.app);
  drop_lease(job);
  if (row.held > 0) pools_[row.pool.value].is_dirty = true;
  row.held = 0;
  std::erase(owner.jobs, job);
  if (view.jobs.state[job] == JobState::Completed)
    owner.alone_done = std::max(owner.alone_done, row.alone);
  if (!owner.jobs.empty()) return refresh(view, row.app);
  withdraw(row.app);
  owner.seats = {};
  active_.change(view.now, -1);
}

void Themis::on_requeue(const View& view, JobId job) {
  JobRow& row = jobs_[job.value];
  drop_lease(job);
  if (row.held > 0) pools_[row.pool.value].is_dirty = true;  // perhaps the last lease there was
  note_held(view, job, row.pool, 0);
  refresh(view, row.app);
}

void Themis::on_capacity_change(const View& view, NodeId node) {
  pools_[view.cluster.cluster().nodes[node.value].pool.value].is_dirty = true;
}

/// GPUs it keeps whatever becomes of the offer.
std::int32_t Themis::firm(JobId job) const noexcept {
  const JobRow& row = jobs_[job.value];
  return row.on_offer ? 0 : row.held;
}

/// A quarter of a lease of progress since it had done so much.
bool Themis::has_got_on(const View& view, JobId job, Duration since) const {
  const Duration done = view.jobs.work_done(job, view.now) - since;
  return done >= view.jobs.rate[job].work_in(options_.lease / 4);
}

/// A running job is resized before its lease ends only after some progress: where many apps want
/// more, every auction would restart them all, and none would get on.
bool Themis::may_grow(const View& view, JobId job) const {
  return has_got_on(view, job, jobs_[job.value].work_at_change);
}

void Themis::withdraw(AppId id) {
  std::vector<Seat>& seats = app(id).seats;
  for (std::size_t pool = 0; pool < seats.size(); ++pool) {
    pools_[pool].market.leave(id, seats[pool],
                              [&](AppId other) -> Seat& { return app(other).seats[pool]; });
  }
}

/// Puts the app where it belongs in every market, after anything about it has changed.
void Themis::refresh(const View& view, AppId id) {
  App& owner = app(id);
  owner.seats.resize(pools_.size());
  const bool was_starving =
      std::ranges::any_of(owner.seats, [](const Seat& seat) { return seat.is_starving; });
  withdraw(id);
  std::vector<std::int32_t> units(pools_.size(), 0);
  bool has_some = false;
  for (const JobId job : owner.jobs) {
    const JobRow& row = jobs_[job.value];
    const std::int32_t has = firm(job);
    has_some = has_some || has > 0;
    if (has + row.unit > row.most) continue;
    for (const PoolId pool : view.shape(job).pools) {
      if (has > 0 && pool != row.pool) continue;
      std::int32_t& unit = units[pool.value];
      unit = unit == 0 ? row.unit : std::min(unit, row.unit);
    }
  }
  if (has_some) {
    owner.since = kNever;
    owner.missed = 0;
  } else if (owner.since == kNever) {
    owner.since = view.now;
  }
  if (std::ranges::all_of(units, [](std::int32_t unit) { return unit == 0; })) return;
  const double rho_now = has_some ? rho(view, id) : 0;
  for (std::uint32_t pool = 0; pool < units.size(); ++pool) {
    if (units[pool] == 0) continue;
    const Seat wanted{units[pool], owner.since, rho_now, 0, was_starving && !has_some};
    pools_[pool].market.enter(id, owner.seats[pool], wanted);
  }
}

double Themis::elapsed(const View& view, AppId id) const {
  return to_seconds(view.now - apps_[id.value].start);
}

double Themis::ideal(const View& view, AppId id) const {
  const App& owner = apps_[id.value];
  double alone = owner.alone_done;
  for (const JobId job : owner.jobs) alone = std::max(alone, jobs_[job.value].alone);
  const double average = active_.average(owner.start, owner.integral_at_start, view.now);
  return std::max(alone, 1e-6) * std::max(1.0, average);
}

double Themis::rho(const View& view, AppId id) {
  const Stake stake = make_stake(view, id, PoolId{0});
  return (elapsed(view, id) + stake.split.seconds_left()) / ideal(view, id);
}

void Themis::drop_lease(JobId job) {
  JobRow& row = jobs_[job.value];
  leases_.erase({row.lease_end, job});
  row.lease_end = kNever;
  row.on_offer = false;
}

void Themis::set_lease(const View& view, JobId job) {
  drop_lease(job);
  JobRow& row = jobs_[job.value];
  row.lease_end = Grid{options_.align}.at_or_after(view.now + options_.lease);
  row.work_at_lease = view.jobs.work_done(job, view.now);
  leases_.emplace(row.lease_end, job);
}

/// Leases that end now put their GPUs on offer. Those that ended while nobody wanted any were
/// renewed then. One whose job was busy restarting goes on: where a move takes as long as a lease,
/// jobs would take turns for ever and none would get on.
void Themis::collect_ended(const View& view) {
  while (!leases_.empty() && leases_.begin()->first <= view.now) {
    const auto [end, job] = *leases_.begin();
    leases_.erase(leases_.begin());
    JobRow& row = jobs_[job.value];
    PoolRow& pool = pools_[row.pool.value];
    const Duration term = Grid{options_.align}.at_or_after(Time{options_.lease}).time_since_epoch();
    if (end < view.now && !pool.was_wanted) {
      row.lease_end = end + (view.now - end + term - Duration{1}) / term * term;
      leases_.emplace(row.lease_end, job);
      continue;
    }
    if (!has_got_on(view, job, row.work_at_lease)) {
      const Time at_work = std::max(view.now, view.jobs.work_from[job]);
      row.lease_end = Grid{options_.align}.at_or_after(at_work + options_.lease / 4 + Duration{1});
      leases_.emplace(row.lease_end, job);
      continue;
    }
    row.lease_end = kNever;
    row.on_offer = true;
    pool.ended.push_back(job);
  }
}

void Themis::decide(const View& view, Plan& plan, Rng& rng) {
  collect_ended(view);
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    PoolRow& pool = pools_[i];
    if (!pool.ended.empty() || pool.is_dirty) hold(view, plan, PoolId{i}, rng);
    for (const JobId job : pool.ended) {
      jobs_[job.value].on_offer = false;
      if (jobs_[job.value].held > 0 && jobs_[job.value].lease_end == kNever) set_lease(view, job);
    }
    pool.ended.clear();
    pool.is_dirty = false;
    pool.was_wanted = !pool.market.empty();
  }
}

std::optional<Time> Themis::next_wakeup(const View&) {
  const auto wanted = [](const PoolRow& pool) { return !pool.market.empty(); };
  if (leases_.empty() || std::ranges::none_of(pools_, wanted)) return std::nullopt;
  return leases_.begin()->first;
}

}  // namespace berth::themis

namespace berth {

namespace {

using Made = Result<std::unique_ptr<Policy>>;

Result<Duration> above_zero(const Params& params, std::string_view key) {
  BERTH_TRY(const Duration duration, params.duration(key));
  if (duration <= Duration::zero()) return params.wrong(key, "must be more than zero");
  return duration;
}

Made make_themis(const PolicyEntry&, const Params& params) {
  themis::Options options;
  BERTH_TRY(options.f, params.number("f", 0, 1));
  if (options.f >= 1) return params.wrong("f", "must be below 1: somebody has to see the offer");
  BERTH_TRY(options.lease, above_zero(params, "lease"));
  BERTH_TRY(options.align, above_zero(params, "align"));
  BERTH_TRY(const std::int64_t bidders, params.integer("max_bidders", 1, 1'000'000));
  options.max_bidders = static_cast<std::size_t>(bidders);
  BERTH_TRY(const std::int64_t starve, params.integer("starve_leases", 1, 1'000'000));
  options.starve_leases = static_cast<std::int32_t>(starve);
  BERTH_TRY(options.auction_on_arrival, params.flag("auction_on_arrival"));
  BERTH_TRY(const std::size_t app, params.choice("app", {"group", "study", "job"}));
  options.app = static_cast<themis::AppOf>(app);
  BERTH_TRY(const std::size_t slowdown, params.choice("slowdown", {"believed", "class"}));
  options.slowdown = slowdown == 0 ? themis::Slowdown::Believed : themis::Slowdown::ByClass;
  BERTH_TRY(options.elastic, elastic_rule(params));
  return std::make_unique<themis::Themis>(options);
}

Made make_rounds(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const Duration round, above_zero(params, "round"));
  return std::make_unique<themis::FtfRounds>(round);
}

}  // namespace

PolicyEntry themis_entry() {
  std::vector<ParamSpec> params{
      {"f", "0.8", "part of the apps, the best-off ones, that do not see an offer; below 1"},
      {"lease", "20m", "seconds for which GPUs are granted"},
      {"align", "60", "seconds; leases end at multiples of this"},
      {"max_bidders", "256", "apps that take part in one auction at most"},
      {"starve_leases", "3", "leases a gang may miss before GPUs are held back for it"},
      {"auction_on_arrival", "on", "hold an auction when an app arrives and GPUs are free"},
      {"app", "group", "what is fair to whom: group (study, else group), study, or job"},
      {"slowdown", "believed",
       "of spread gangs: believed (as the profiles say) or class (1/1.2/1.6/2.2, 1/1/1.1/1.2)"}};
  for (ParamSpec& param : elastic_params()) params.push_back(std::move(param));
  return {.name = "themis",
          .summary = "finish-time fairness of apps by auctions of leases",
          .params = std::move(params),
          .make = make_themis};
}

PolicyEntry ftf_fractional_entry() {
  return {.name = "ftf-fractional",
          .summary = "finish-time fairness in rounds by fractions of time, rigid gangs",
          .params = {{"round", "360", "seconds of a round, aligned to time zero"}},
          .make = make_rounds};
}

}  // namespace berth
