#include "policies/agents/moves.h"

#include <algorithm>

namespace berth::agents {

namespace {

constexpr int kMostSwaps = 16;  // partners that are weighed for one job

Level below(Level level) { return static_cast<Level>(static_cast<int>(level) - 1); }

}  // namespace

bool Moves::run(Pass& pass) {
  const ClusterState& state = pass.plan.cluster();
  if (state.topology() == nullptr) return false;
  arbiters_.holders(holders_);
  bool moved = false;
  for (const JobId job : holders_) {
    if (!may_move(pass, job)) continue;
    const bool went = (pass.view.believed().effects().locality && go_closer(pass, job)) ||
                      (state.buses() != nullptr && part(pass, job));
    moved = moved || went;
  }
  return moved;
}

bool Moves::may_move(const Pass& pass, JobId job) const {
  return pass.view.jobs.is_running(job) && pass.plan.holds(job) &&
         grants_.has_places(pass.plan.cluster(), pass.view.shape(job)) &&
         arbiters_.has_rested(job, pass.view.now, options_.migration.pause);
}

void Moves::book(Pass& pass, JobId job) {
  pass.plan.set_pause(job, options_.migration_cost);
  arbiters_.note_move(job, pass.view.now);
  arbiters_.mark_changed(arbiters_.pod_of(job));
  arbiters_.transfer(job, arbiters_.pods().pod_of(pass.plan.slices(job)));
}

bool Moves::go_closer(Pass& pass, JobId job) {
  const PoolId pool = pass.plan.pool_of(job);
  const Shape& shape = pass.view.shape(job);
  const Level here = pass.view.believed().servers().level_of(pass.plan.slices(job));
  if (shape.gpus == 1 || here <= pass.view.believed().best_level(pool, shape.gpus)) return false;
  const auto match = grants_.find(pass.plan.cluster(), shape, pool,
                                  {.pod = arbiters_.pod_of(job), .max_level = below(here)});
  if (!match) return false;
  const MigrationOffer offer{
      .seconds_left = agents_.self_of(pass.view, job).left,
      .slowdown_now =
          slowdown(pass, job) / believed_rate(pass.view, job, pool, pass.view.gpus(job), here),
      .slowdown_there = 1 / believed_rate(pass.view, job, pool, pass.view.gpus(job), match->level),
      .cost_seconds = to_seconds(options_.migration_cost)};
  if (!should_migrate(offer, options_.migration)) return false;
  const bool went = try_restart(pass.plan, job, Reason::Locality, [&] {
    return pass.plan.try_start_on(job, pool, grants_.slices_of(*match), Reason::Locality);
  });
  if (went) book(pass, job);
  return went;
}

bool Moves::part(Pass& pass, JobId job) {
  return has_bad_match(pass, job) && (move_away(pass, job) || swap_away(pass, job));
}

/// The smaller of two gangs goes; both are asked if they are equal.
bool Moves::has_bad_match(const Pass& pass, JobId job) const {
  const std::int32_t bus = pass.view.shape(job).bus_milli;
  return std::ranges::any_of(pass.plan.slices(job), [&](const Slice& slice) {
    const auto here = pass.plan.cluster().buses()->on(slice.node);
    return std::ranges::any_of(here, [&](const BusTable::Resident& other) {
      const double times = BusTable::pair_slowdown(bus, other.bus_milli);
      return other.job != job && should_part(times, times) &&
             pass.view.gpus(job) <= pass.view.gpus(other.job);
    });
  });
}

bool Moves::move_away(Pass& pass, JobId job) {
  Step step{job, pass.plan.pool_of(job), devices_of(pass.plan, job), {}};
  const Level here = pass.view.believed().servers().level_of(std::span<const Slice>{step.from});
  pass.attempt([&] {  // only to see where it would go without itself: undone in any case
    pass.plan.preempt(job, Reason::Interference);
    const auto match = grants_.find(pass.plan.cluster(), pass.view.shape(job), step.pool,
                                    {.pod = arbiters_.pod_of(job), .max_level = here});
    if (!match) return false;
    const auto there = grants_.slices_of(*match);
    step.to.assign(there.begin(), there.end());
    return false;
  });
  return !step.to.empty() && step.to != step.from && try_steps(pass, std::span(&step, 1));
}

bool Moves::is_swap_partner(const Pass& pass, JobId job, JobId other) const {
  if (other == job || pass.view.shape(other).gpus != pass.view.shape(job).gpus ||
      !may_move(pass, other) || arbiters_.pod_of(other) != arbiters_.pod_of(job) ||
      pass.plan.pool_of(other) != pass.plan.pool_of(job))
    return false;
  const auto mine = pass.plan.slices(job);
  const auto theirs = pass.plan.slices(other);
  return mine.size() == 1 && theirs.size() == 1 && mine.front().node != theirs.front().node &&
         pass.view.shape(other).bus_milli != pass.view.shape(job).bus_milli;
}

bool Moves::swap_away(Pass& pass, JobId job) {
  int weighed = 0;
  for (const JobId other : holders_) {
    if (!is_swap_partner(pass, job, other)) continue;
    if (weighed++ == kMostSwaps) return false;
    const PoolId pool = pass.plan.pool_of(job);
    const auto mine = devices_of(pass.plan, job);
    const auto theirs = devices_of(pass.plan, other);
    const std::vector<Step> steps{{job, pool, mine, theirs}, {other, pool, theirs, mine}};
    if (try_steps(pass, steps)) return true;
  }
  return false;
}

/// The most it is slowed down on one of its servers.
double Moves::slowdown(const Pass& pass, JobId job) const {
  const BusTable* buses = pass.plan.cluster().buses();
  double most = 1;
  if (buses == nullptr) return most;
  for (const Slice& slice : pass.plan.slices(job))
    most = std::max(most, buses->slowdown(slice.node, {job, pass.view.shape(job).bus_milli}));
  return most;
}

void Moves::collect_concerned(const Pass& pass, std::span<const Step> steps) {
  std::vector<JobId> jobs;
  const auto add = [&](std::span<const Slice> slices) {
    for (const Slice& slice : slices) {
      for (const auto& resident : pass.plan.cluster().buses()->on(slice.node))
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
    concerned_.push_back({job, agents_.self_of(pass.view, job).left, slowdown(pass, job)});
}

bool Moves::try_steps(Pass& pass, std::span<const Step> steps) {
  collect_concerned(pass, steps);
  const bool pays = pass.attempt([&] {
    for (const Step& step : steps) pass.plan.preempt(step.job, Reason::Interference);
    const auto starts = [&](const Step& step) {
      return pass.plan.try_start_on(step.job, step.pool, step.to, Reason::Interference);
    };
    return std::ranges::all_of(steps, starts) && pays_for_all(pass, steps.size());
  });
  if (!pays) return false;
  for (const Step& step : steps) book(pass, step.job);
  return true;
}

/// All whose speed has changed count, each with the seconds it has left.
bool Moves::pays_for_all(const Pass& pass, std::size_t moves) const {
  MigrationOffer offer{
      .seconds_left = 1,  // the seconds left of each are in the sums
      .slowdown_now = 0,
      .slowdown_there = 0,
      .cost_seconds = static_cast<double>(moves) * to_seconds(options_.migration_cost)};
  for (const Concern& each : concerned_) {
    const double after = slowdown(pass, each.job);
    if (after == each.slowdown_before) continue;
    offer.slowdown_now += each.seconds_left * each.slowdown_before;
    offer.slowdown_there += each.seconds_left * after;
  }
  return should_migrate(offer, options_.migration);
}

}  // namespace berth::agents
