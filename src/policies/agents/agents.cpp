#include "policies/agents/agents.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "perf/locality.h"
#include "policies/placements/topology.h"

namespace berth::agents {

namespace {

constexpr std::size_t kFirstOfClass = 8;  // jobs of one class that bid in a round
constexpr std::size_t kMostVisible = 64;  // agents that see one offer
constexpr std::int64_t kDevicesPerArbiter = 2000;
constexpr double kWaitMemory = 0.5;  // weight of the last wait in the smoothed one

Level above(Level level) { return static_cast<Level>(static_cast<int>(level) + 1); }
Level below(Level level) { return static_cast<Level>(static_cast<int>(level) - 1); }

}  // namespace

Agents::ClassKey Agents::class_of(const View& view, JobId job) const {
  return {view.jobs.shape[job], view.jobs.profile[job]};
}

void Agents::enqueue(const View& view, JobId job) {
  if (waiting_[class_of(view, job)].insert(job).second) ++waiting_jobs_;
}

void Agents::dequeue(const View& view, JobId job) {
  const auto found = waiting_.find(class_of(view, job));
  if (found == waiting_.end() || found->second.erase(job) == 0) return;
  --waiting_jobs_;
  if (found->second.empty()) waiting_.erase(found);
}

Agents::Lease& Agents::lease_of(JobId job) {
  if (job.value >= leases_.size())
    leases_.resize(std::max<std::size_t>(job.value + 1, leases_.size() * 2));
  return leases_[job.value];
}

void Agents::grant_lease(const View& view, JobId job) {
  Lease& lease = lease_of(job);
  ends_.erase({lease.end, job});
  lease.end = view.now + options_.lease;
  ends_.emplace(lease.end, job);
}

void Agents::on_departure(const View& view, JobId job) {
  dequeue(view, job);
  Lease& lease = lease_of(job);
  ends_.erase({lease.end, job});
  lease.end = kNever;
}

void Agents::on_requeue(const View& view, JobId job) {
  on_departure(view, job);
  enqueue(view, job);
}

SelfView Agents::self_of(const View& view, JobId job) const {
  SelfView self;
  self.elapsed = to_seconds(view.now - view.jobs.submitted[job]);
  self.ideal = to_seconds(view.estimate(job));
  const double left = to_seconds(view.estimated_left(job));
  // an estimate that was outlived says nothing more: it will run as long again as it has
  const double done = to_seconds(view.jobs.work_done(job, view.now));
  self.left = left > 0 ? left : done;
  if (const auto deadline = view.deadline(job)) self.to_deadline = to_seconds(*deadline - view.now);
  return self;
}

double Agents::rate_at(const View& view, JobId job, PoolId pool, Level level) const {
  return view.believed().alone({.profile = view.jobs.profile[job],
                                .pool = pool,
                                .reference = view.jobs.reference[job],
                                .gpus = view.gpus(job),
                                .wanted = view.gpus(job),
                                .batch = view.jobs.batch[job],
                                .level = level,
                                .link_jobs = 1,
                                .terms = {}});
}

/// The label of its class at first; one level more while the way costs less than the wait. Its own
/// wait counts as well as that of others like it, so nobody waits for a place that never comes.
Level Agents::accepted_level(const View& view, JobId job, PoolId pool,
                             const TopologyIndex& index) const {
  const std::int32_t gpus = view.gpus(job);
  const Profile& profile = view.believed().profile(view.jobs.profile[job]);
  const auto sensitivity =
      locality_sensitivity(profile.iteration, profile.batch, gpus, view.cluster.cluster().links);
  Level level = first_level(locality_label(sensitivity), index.lowest_possible(pool, gpus));
  const SelfView self = self_of(view, job);
  while (level < Level::CrossRack) {
    const double ratio = rate_at(view, job, pool, level) / rate_at(view, job, pool, above(level));
    const auto known = waits_.find({gpus, level});
    const double wait = std::max(self.elapsed, known == waits_.end() ? 0 : known->second);
    if (ratio > 1 && !should_relax(self.left, ratio, wait)) break;
    level = above(level);
  }
  return level;
}

Agents::Candidate Agents::make_candidate(const View& view, JobId job, PoolId pool) const {
  const SelfView self = self_of(view, job);
  const double rate = rate_at(view, job, pool, view.believed().best_level(pool, view.gpus(job)));
  Candidate candidate{job, pool, {}, 0, false};
  const double with = badness(options_.value, self, rate, 0);
  candidate.bidder.badness_now = badness(options_.value, self, rate, to_seconds(options_.lease));
  candidate.bidder.bids = {{view.gpus(job), with}};
  candidate.plight = plight(options_.value, with);
  return candidate;
}

void Agents::decide(const View& view, Plan& plan, Rng&) {
  held_back_ = false;
  if (waiting_jobs_ > 0) {
    candidates_.clear();
    losers_.clear();
    end_leases(view, plan);
    add_waiting(view, plan);
    hide_offers();
    sell(view, plan);
    give_leftovers(view, plan);
  }
  while (!ends_.empty() && ends_.begin()->first <= view.now)  // nobody wanted these devices
    grant_lease(view, ends_.begin()->second);
  if (options_.migration_interval > Duration::zero() && view.now >= next_migration_)
    migrate(view, plan);
}

/// Holders whose lease is over put their devices up for sale and bid for them like the others.
void Agents::end_leases(const View& view, Plan& plan) {
  for (auto end = ends_.begin();
       end != ends_.end() && end->first <= view.now && candidates_.size() < kMostVisible; ++end) {
    const JobId job = end->second;
    Candidate candidate = make_candidate(view, job, plan.pool_of(job));
    candidate.is_holder = true;
    candidate.bidder.bids.front().badness *= 1 - options_.switching_credit;
    candidates_.push_back(std::move(candidate));
  }
  for (const Candidate& holder : candidates_) {
    ends_.erase({lease_of(holder.job).end, holder.job});
    lease_of(holder.job).end = kNever;
    plan.preempt(holder.job, Reason::Lease);
  }
}

/// The first of every class that fits by numbers, in the first pool it does.
void Agents::add_waiting(const View& view, const Plan& plan) {
  for (const auto& [key, jobs] : waiting_) {
    const Shape& shape = view.shapes[key.first];
    const auto pool = std::ranges::find_if(
        shape.pools, [&](PoolId id) { return plan.cluster().may_hold(id, shape); });
    if (pool == shape.pools.end()) continue;
    const std::int64_t gangs = plan.cluster().free_gpus(*pool) / shape.gpus + 1;
    std::size_t most = std::min<std::size_t>(kFirstOfClass, static_cast<std::size_t>(gangs));
    for (const JobId job : jobs) {
      if (most-- == 0) break;
      candidates_.push_back(make_candidate(view, job, *pool));
    }
  }
}

/// Only the worst-off part of the agents sees the offer; old holders see it whatever they are.
void Agents::hide_offers() {
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return std::tuple(!a.is_holder, -a.plight, a.job) < std::tuple(!b.is_holder, -b.plight, b.job);
  });
  const auto first = std::ranges::find(candidates_, false, &Candidate::is_holder);
  const auto newcomers = static_cast<double>(candidates_.end() - first);
  const auto see = static_cast<std::size_t>(std::ceil((1 - options_.hidden) * newcomers));
  const std::size_t visible = std::clamp<std::size_t>(see, 1, kMostVisible);
  const auto holders = static_cast<std::size_t>(first - candidates_.begin());
  if (candidates_.size() > holders + visible)
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(holders + visible),
                      candidates_.end());
}

/// Each arbiter auctions its part of each pool among the agents dealt to it.
void Agents::sell(const View& view, Plan& plan) {
  const std::int64_t arbiters = std::max<std::int64_t>(
      1, (view.cluster.usable_gpus() + kDevicesPerArbiter - 1) / kDevicesPerArbiter);
  std::vector<std::size_t> members;
  for (std::uint32_t pool = 0; pool < view.cluster.pools(); ++pool) {
    for (std::int64_t arbiter = 0; arbiter < arbiters; ++arbiter) {
      members.clear();
      for (std::size_t i = static_cast<std::size_t>(arbiter); i < candidates_.size();
           i += static_cast<std::size_t>(arbiters)) {
        if (candidates_[i].pool.value == pool) members.push_back(i);
      }
      sell_pool(view, plan, PoolId{pool}, members);
    }
  }
}

void Agents::sell_pool(const View& view, Plan& plan, PoolId pool,
                       std::span<const std::size_t> members) {
  if (members.empty()) return;
  std::vector<Bidder> bidders;
  for (const std::size_t i : members) bidders.push_back(candidates_[i].bidder);
  const auto free =
      static_cast<std::int32_t>(std::min<std::int64_t>(plan.cluster().free_gpus(pool), 1'000'000));
  const Choice choice = solve_auction(bidders, free);
  // holders first: they come before newcomers in the order, and stay where they are
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Candidate& candidate = candidates_[members[i]];
    const bool won = choice[i].has_value();
    if (candidate.is_holder) {
      if (won && plan.try_start_in(pool, candidate.job, Reason::Lease))
        grant_lease(view, candidate.job);
      else
        losers_.push_back(candidate.job);
    } else if (won) {
      static_cast<void>(start_in(view, plan, candidate.job, pool));
    }
  }
}

/// Nothing idles that somebody could use: old holders keep what nobody took, then the others by how
/// badly off they are.
void Agents::give_leftovers(const View& view, Plan& plan) {
  for (const JobId job : losers_) {
    if (plan.try_start(job, Reason::Lease))
      grant_lease(view, job);
    else
      enqueue(view, job);
  }
  struct Next {
    double plight;
    JobId job;
    ClassKey key;
  };
  std::vector<Next> order;
  for (const auto& [key, jobs] : waiting_) {
    const Shape& shape = view.shapes[key.first];
    if (!plan.has_room(shape)) continue;
    const Candidate head = make_candidate(view, *jobs.begin(), shape.pools.front());
    order.push_back({head.plight, head.job, key});
  }
  std::ranges::sort(order, [](const Next& a, const Next& b) {
    return std::tuple(-a.plight, a.job) < std::tuple(-b.plight, b.job);
  });
  for (const Next& next : order) {
    for (auto found = waiting_.find(next.key); found != waiting_.end();
         found = waiting_.find(next.key)) {
      if (!start(view, plan, *found->second.begin())) break;
    }
  }
}

bool Agents::start(const View& view, Plan& plan, JobId job) {
  return std::ranges::any_of(view.shape(job).pools,
                             [&](PoolId pool) { return start_in(view, plan, job, pool); });
}

bool Agents::start_in(const View& view, Plan& plan, JobId job, PoolId pool) {
  const Shape& shape = view.shape(job);
  const TopologyIndex* index = plan.cluster().topology();
  if (index == nullptr || shape.is_fraction()) {
    if (!plan.try_start_in(pool, job, Reason::Order)) return false;
  } else {
    const ShapeRoom room(plan.cluster(), shape);
    const MatchQuery query{.pool = pool,
                           .gpus = shape.gpus,
                           .max_level = accepted_level(view, job, pool, *index),
                           .room = shape.needs_side_resources() ? &room : nullptr};
    const auto match = index->find(query, parts_);
    if (!match) {
      held_back_ = held_back_ || plan.cluster().may_hold(pool, shape);
      return false;
    }
    slices_.clear();
    append_slices(match->parts, slices_);
    if (!plan.try_start_on(job, pool, slices_, Reason::Order)) return false;
    const double waited = to_seconds(view.now - view.jobs.submitted[job]);
    double& smoothed = waits_.try_emplace({shape.gpus, match->level}, waited).first->second;
    smoothed += kWaitMemory * (waited - smoothed);
  }
  dequeue(view, job);
  grant_lease(view, job);
  return true;
}

void Agents::migrate(const View& view, Plan& plan) {
  next_migration_ = view.now + options_.migration_interval;
  if (plan.cluster().topology() == nullptr || !view.believed().effects().locality) return;
  std::vector<JobId> holders;
  for (const auto& [end, job] : ends_) holders.push_back(job);
  std::ranges::sort(holders);
  for (const JobId job : holders) {
    const bool rested = view.now - lease_of(job).moved >= MigrationRule{}.pause;
    if (view.gpus(job) > 1 && rested && view.jobs.is_running(job) && plan.holds(job))
      try_move(view, plan, job);
  }
}

void Agents::try_move(const View& view, Plan& plan, JobId job) {
  const PoolId pool = plan.pool_of(job);
  const Shape& shape = view.shape(job);
  const Level here = view.believed().servers().level_of(plan.slices(job));
  if (here <= view.believed().best_level(pool, shape.gpus)) return;
  const ShapeRoom room(plan.cluster(), shape);
  const auto match =
      plan.cluster().topology()->find({.pool = pool,
                                       .gpus = shape.gpus,
                                       .max_level = below(here),
                                       .room = shape.needs_side_resources() ? &room : nullptr},
                                      parts_);
  if (!match) return;
  const MigrationOffer offer{.seconds_left = self_of(view, job).left,
                             .slowdown_now = 1 / rate_at(view, job, pool, here),
                             .slowdown_there = 1 / rate_at(view, job, pool, match->level),
                             .cost_seconds = to_seconds(options_.migration_cost)};
  if (!should_migrate(offer, {})) return;
  slices_.clear();
  append_slices(match->parts, slices_);
  const Plan::Mark mark = plan.mark();
  plan.preempt(job, Reason::Locality);
  if (!plan.try_start_on(job, pool, slices_, Reason::Locality)) return plan.rollback(mark);
  plan.set_pause(job, options_.migration_cost);
  lease_of(job).moved = view.now;
}

/// The next round while somebody waits: when a lease ends, or to see whether a job that waits for
/// closer devices has waited long enough. Nothing of that can happen by itself on a cluster that
/// nobody leases and nobody fits on.
std::optional<Time> Agents::next_wakeup(const View& view) {
  Time wakeup = kNever;
  const Time next_round = view.now + options_.interval;
  if (waiting_jobs_ > 0 && held_back_) wakeup = next_round;
  if (waiting_jobs_ > 0 && !ends_.empty())
    wakeup = std::min(wakeup, std::max(ends_.begin()->first, next_round));
  const bool may_move = options_.migration_interval > Duration::zero() &&
                        view.believed().effects().locality && !ends_.empty();
  if (may_move) wakeup = std::min(wakeup, next_migration_);
  if (wakeup == kNever) return std::nullopt;
  return wakeup;
}

}  // namespace berth::agents
