#include "policies/agents/moves.h"

#include <algorithm>

namespace berth::agents {

namespace {

constexpr int kMostSwaps = 16;  // partners that are weighed for one job

Level below(Level level) { return static_cast<Level>(static_cast<int>(level) - 1); }

std::vector<Slice> copy_of(std::span<const Slice> slices) { return {slices.begin(), slices.end()}; }

}  // namespace

bool Moves::run(const View& view, Plan& plan) {
  const ClusterState& state = plan.cluster();
  if (state.topology() == nullptr) return false;
  books_.holders(holders_);
  bool moved = false;
  for (const JobId job : holders_) {
    if (!may_move(view, plan, job)) continue;
    const bool went = (view.believed().effects().locality && go_closer(view, plan, job)) ||
                      (state.buses() != nullptr && part(view, plan, job));
    moved = moved || went;
  }
  return moved;
}

bool Moves::may_move(const View& view, const Plan& plan, JobId job) const {
  return view.jobs.is_running(job) && plan.holds(job) &&
         grants_.has_places(plan.cluster(), view.shape(job)) &&
         books_.has_rested(job, view.now, options_.migration.pause);
}

void Moves::book(const View& view, Plan& plan, JobId job) {
  plan.set_pause(job, options_.migration_cost);
  books_.note_move(job, view.now);
  books_.mark_changed(books_.pod_of(job));
  books_.transfer(job, books_.pods().pod_of(plan.slices(job)));
}

bool Moves::go_closer(const View& view, Plan& plan, JobId job) {
  const PoolId pool = plan.pool_of(job);
  const Shape& shape = view.shape(job);
  const Level here = view.believed().servers().level_of(plan.slices(job));
  if (shape.gpus == 1 || here <= view.believed().best_level(pool, shape.gpus)) return false;
  const auto match = grants_.find(plan.cluster(), shape, pool,
                                  {.pod = books_.pod_of(job), .max_level = below(here)});
  if (!match) return false;
  const MigrationOffer offer{
      .seconds_left = agents_.self_of(view, job).left,
      .slowdown_now = slowdown(view, plan, job) / agents_.rate_at(view, job, pool, here),
      .slowdown_there = 1 / agents_.rate_at(view, job, pool, match->level),
      .cost_seconds = to_seconds(options_.migration_cost)};
  if (!should_migrate(offer, options_.migration)) return false;
  const Plan::Mark mark = plan.mark();
  plan.preempt(job, Reason::Locality);
  if (!plan.try_start_on(job, pool, grants_.slices_of(*match), Reason::Locality)) {
    plan.rollback(mark);
    return false;
  }
  book(view, plan, job);
  return true;
}

bool Moves::part(const View& view, Plan& plan, JobId job) {
  return has_bad_match(view, plan, job) &&
         (move_away(view, plan, job) || swap_away(view, plan, job));
}

/// The smaller of two gangs goes; both are asked if they are equal.
bool Moves::has_bad_match(const View& view, const Plan& plan, JobId job) const {
  const std::int32_t bus = view.shape(job).bus_milli;
  return std::ranges::any_of(plan.slices(job), [&](const Slice& slice) {
    const auto here = plan.cluster().buses()->on(slice.node);
    return std::ranges::any_of(here, [&](const BusTable::Resident& other) {
      const double times = BusTable::pair_slowdown(bus, other.bus_milli);
      return other.job != job && should_part(times, times) &&
             view.gpus(job) <= view.gpus(other.job);
    });
  });
}

bool Moves::move_away(const View& view, Plan& plan, JobId job) {
  Step step{job, plan.pool_of(job), copy_of(plan.slices(job)), {}};
  const Level here = view.believed().servers().level_of(std::span<const Slice>{step.from});
  const Plan::Mark mark = plan.mark();
  plan.preempt(job, Reason::Interference);
  const auto match = grants_.find(plan.cluster(), view.shape(job), step.pool,
                                  {.pod = books_.pod_of(job), .max_level = here});
  if (match) step.to = copy_of(grants_.slices_of(*match));
  plan.rollback(mark);
  return match && step.to != step.from && try_steps(view, plan, std::span(&step, 1));
}

bool Moves::is_swap_partner(const View& view, const Plan& plan, JobId job, JobId other) const {
  if (other == job || view.shape(other).gpus != view.shape(job).gpus ||
      !may_move(view, plan, other) || books_.pod_of(other) != books_.pod_of(job) ||
      plan.pool_of(other) != plan.pool_of(job))
    return false;
  const auto mine = plan.slices(job);
  const auto theirs = plan.slices(other);
  return mine.size() == 1 && theirs.size() == 1 && mine.front().node != theirs.front().node &&
         view.shape(other).bus_milli != view.shape(job).bus_milli;
}

bool Moves::swap_away(const View& view, Plan& plan, JobId job) {
  int weighed = 0;
  for (const JobId other : holders_) {
    if (!is_swap_partner(view, plan, job, other)) continue;
    if (weighed++ == kMostSwaps) return false;
    const PoolId pool = plan.pool_of(job);
    const auto mine = copy_of(plan.slices(job));
    const auto theirs = copy_of(plan.slices(other));
    const std::vector<Step> steps{{job, pool, mine, theirs}, {other, pool, theirs, mine}};
    if (try_steps(view, plan, steps)) return true;
  }
  return false;
}

/// The most it is slowed down on one of its servers.
double Moves::slowdown(const View& view, const Plan& plan, JobId job) const {
  const BusTable* buses = plan.cluster().buses();
  double most = 1;
  if (buses == nullptr) return most;
  for (const Slice& slice : plan.slices(job))
    most = std::max(most, buses->slowdown(slice.node, {job, view.shape(job).bus_milli}));
  return most;
}

void Moves::collect_concerned(const View& view, const Plan& plan, std::span<const Step> steps) {
  std::vector<JobId> jobs;
  const auto add = [&](std::span<const Slice> slices) {
    for (const Slice& slice : slices) {
      for (const auto& resident : plan.cluster().buses()->on(slice.node))
        jobs.push_back(resident.job);
    }
  };
  for (const Step& step : steps) {
    add(step.from);
    add(step.to);
  }
  std::ranges::sort(jobs);
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  concerned_.clear();
  for (const JobId job : jobs)
    concerned_.push_back({job, agents_.self_of(view, job).left, slowdown(view, plan, job)});
}

bool Moves::apply(Plan& plan, std::span<const Step> steps) const {
  for (const Step& step : steps) plan.preempt(step.job, Reason::Interference);
  return std::ranges::all_of(steps, [&](const Step& step) {
    return plan.try_start_on(step.job, step.pool, step.to, Reason::Interference);
  });
}

bool Moves::try_steps(const View& view, Plan& plan, std::span<const Step> steps) {
  collect_concerned(view, plan, steps);
  const Plan::Mark mark = plan.mark();
  MigrationOffer offer{
      .seconds_left = 1,  // the seconds left of each are in the sums
      .slowdown_now = 0,
      .slowdown_there = 0,
      .cost_seconds = static_cast<double>(steps.size()) * to_seconds(options_.migration_cost)};
  bool go = apply(plan, steps);
  for (const Concern& each : concerned_) {
    const double after = go ? slowdown(view, plan, each.job) : each.slowdown_before;
    if (after == each.slowdown_before) continue;
    offer.slowdown_now += each.seconds_left * each.slowdown_before;
    offer.slowdown_there += each.seconds_left * after;
  }
  go = go && should_migrate(offer, options_.migration);
  if (!go) plan.rollback(mark);
  for (const Step& step : steps) {
    if (go) book(view, plan, step.job);
  }
  return go;
}

}  // namespace berth::agents
