#include "policies/agents/sale.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace berth::agents {

namespace {

constexpr std::size_t kFirstOfKind = 8;   // jobs of one kind that bid in a round
constexpr std::size_t kMostVisible = 64;  // agents that see one offer

}  // namespace

void Sale::hold(Pass& pass, PodId pod) {
  candidates_.clear();
  holdings_.clear();
  losers_.clear();
  renewed_ = arbiters_.pods().is_divided() && pod == arbiters_.pods().root() ? Renewal::ByThePod
                                                                             : Renewal::Here;
  if (pod == arbiters_.pods().root()) {  // its offer is the whole cluster
    for (std::uint32_t i = 0; i < arbiters_.size(); ++i) end_leases(pass, arbiters_[PodId{i}]);
  } else {
    end_leases(pass, arbiters_[pod]);
  }
  add_waiting(pass, pod);
  hide_offers();
  for (std::uint32_t pool = 0; pool < pass.plan.cluster().pools(); ++pool)
    sell_pool(pass, pod, PoolId{pool});
  give_back(pass);
  give_leftovers(pass, pod);
  Arbiter& arbiter = arbiters_[pod];
  arbiter.changed = false;
  arbiter.next_round = arbiter.held_back.empty() ? kNever : pass.view.now + options_.interval;
}

Sale::Candidate Sale::candidate(const View& view, JobId job, PoolId pool) const {
  Candidate candidate{job, pool, agents_.bidder_of(view, job, pool)};
  candidate.hardship = agents_.hardship_of(candidate.bidder);
  return candidate;
}

/// Holders whose lease is over put their devices up for sale and bid for them like the others.
void Sale::end_leases(Pass& pass, Arbiter& arbiter) {
  while (arbiter.has_ended_lease(pass.view.now) && candidates_.size() < kMostVisible) {
    const JobId job = arbiter.ends.begin()->second;
    Candidate holder = candidate(pass.view, job, pass.plan.pool_of(job));
    holder.bidder.bids.front().badness *= 1 - options_.switching_credit;
    holder.holding = holdings_.size();
    candidates_.push_back(std::move(holder));
    holdings_.push_back(grants_.holding_of(pass.plan, job));
    arbiters_.end_lease(job);
    pass.plan.preempt(job, Reason::Lease);
  }
}

/// The first of every kind that fits by numbers, in the first pool it does.
void Sale::add_waiting(const Pass& pass, PodId pod) {
  const ClusterState& state = pass.plan.cluster();
  for (const auto& [kind, jobs] : arbiters_[pod].waiting) {
    const Shape& shape = pass.view.shapes[pass.view.kinds[kind].shape];
    const auto pool = arbiters_.pods().first_pool(state, pod, shape);
    if (!pool) continue;
    const std::int64_t gangs = arbiters_.pods().free_gpus(state, pod, *pool) / shape.gpus + 1;
    auto most = std::min<std::size_t>(kFirstOfKind, static_cast<std::size_t>(gangs));
    for (const JobId job : jobs) {
      if (most-- == 0) break;
      candidates_.push_back(candidate(pass.view, job, *pool));
    }
  }
}

/// Only the worst-off part of the agents sees the offer; old holders see it whatever they are.
void Sale::hide_offers() {
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return std::tuple(!a.is_holder(), -a.hardship, a.job) <
           std::tuple(!b.is_holder(), -b.hardship, b.job);
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

void Sale::sell_pool(Pass& pass, PodId pod, PoolId pool) {
  std::vector<const Candidate*> members;
  std::vector<Bidder> bidders;
  for (const Candidate& candidate : candidates_) {
    if (candidate.pool != pool) continue;
    members.push_back(&candidate);
    bidders.push_back(candidate.bidder);
  }
  if (members.empty()) return;
  const auto free = static_cast<std::int32_t>(std::min<std::int64_t>(
      arbiters_.pods().free_gpus(pass.plan.cluster(), pod, pool), 1'000'000));
  const Choice choice = solve_auction(bidders, free);
  const std::vector<double> parts = options_.payment == Payment::Charged
                                        ? payments(bidders, free, choice)
                                        : std::vector<double>(bidders.size(), 1);
  // Holders come before newcomers in the order, so that they stay where they are.
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Candidate& bidder = *members[i];
    const bool won = choice[i].has_value();
    if (bidder.is_holder()) {
      if (!won || !grants_.restart(pass, holdings_[bidder.holding], renewal(parts[i])))
        losers_.push_back(bidder.holding);
    } else if (won) {
      static_cast<void>(grants_.start_in(pass, bidder.job, pod, pool, lease_for(parts[i])));
    }
  }
}

/// A gang cannot run on a part of its devices, so what a winner pays is paid in time: it has all of
/// them for that part of a lease, at least until the next offer.
Duration Sale::lease_for(double part) const {
  const auto shorter = seconds_to_duration(to_seconds(options_.lease) * part);
  return std::clamp(shorter, std::min(options_.interval, options_.lease), options_.lease);
}

/// A holder that keeps its devices in a sale of the root has no new lease yet: its pod, which comes
/// next, may have somebody else for them.
Duration Sale::renewal(double part) const {
  return renewed_ == Renewal::ByThePod ? Duration::zero() : lease_for(part);
}

/// Old holders keep what nobody took.
void Sale::give_back(Pass& pass) {
  for (const std::size_t loser : losers_) {
    if (!grants_.restart(pass, holdings_[loser], renewal(1)))
      arbiters_.wait(pass.view, holdings_[loser].job);
  }
}

/// How much slower than at its best a job would be in the place that is left for it.
double Sale::harm_of(const Pass& pass, JobId job, PodId pod) {
  const Shape& shape = pass.view.shape(job);
  const ClusterState& state = pass.plan.cluster();
  const bool all_alike = options_.leftover == agents::Leftover::WorstOff ||
                         !pass.view.believed().effects().locality ||
                         !grants_.has_places(state, shape);
  if (all_alike) return 0;
  for (const PoolId pool : shape.pools) {
    if (const auto match = grants_.find_accepted(pass.view, job, pod, pool))
      return agents_.slowdown_at(pass.view, job, pool, match->level) - 1;
  }
  return 0;
}

/// Nothing idles that somebody could use. A head that fits by numbers and finds no place close
/// enough is held back, and all of its kind with it.
void Sale::give_leftovers(Pass& pass, PodId pod) {
  Arbiter& arbiter = arbiters_[pod];
  const auto fits_by_numbers = [&](const Shape& shape) {
    return arbiters_.pods().first_pool(pass.plan.cluster(), pod, shape).has_value();
  };
  leftovers_.clear();
  for (const auto& [kind, jobs] : arbiter.waiting) {
    const Shape& shape = pass.view.shapes[pass.view.kinds[kind].shape];
    if (!fits_by_numbers(shape)) continue;
    const JobId head = *jobs.begin();
    const Bidder bidder = agents_.bidder_of(pass.view, head, shape.pools.front());
    leftovers_.push_back({harm_of(pass, head, pod), agents_.hardship_of(bidder), head, kind});
  }
  std::ranges::sort(leftovers_, [](const Leftover& a, const Leftover& b) {
    return std::tuple(a.harm, -a.hardship, a.head) < std::tuple(b.harm, -b.hardship, b.head);
  });
  arbiter.held_back.clear();
  for (const Leftover& next : leftovers_) {
    auto found = arbiter.waiting.find(next.kind);
    while (found != arbiter.waiting.end() && grants_.start(pass, *found->second.begin(), pod))
      found = arbiter.waiting.find(next.kind);
    if (found != arbiter.waiting.end() && fits_by_numbers(pass.view.shape(next.head)))
      arbiter.held_back.push_back(*found->second.begin());
  }
}

}  // namespace berth::agents
