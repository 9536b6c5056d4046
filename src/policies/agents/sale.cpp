#include "policies/agents/sale.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace berth::agents {

namespace {

constexpr std::size_t kFirstOfClass = 8;  // jobs of one class that bid in a round
constexpr std::size_t kMostVisible = 64;  // agents that see one offer

}  // namespace

void Sale::hold(const View& view, Plan& plan, PodId pod) {
  candidates_.clear();
  holdings_.clear();
  losers_.clear();
  renewed_ =
      books_.pods().is_divided() && pod == books_.pods().root() ? Renewal::ByThePod : Renewal::Here;
  if (pod == books_.pods().root()) {  // its offer is the whole cluster
    for (std::uint32_t i = 0; i < books_.arbiters(); ++i) end_leases(view, plan, books_[PodId{i}]);
  } else {
    end_leases(view, plan, books_[pod]);
  }
  add_waiting(view, plan, pod);
  hide_offers();
  for (std::uint32_t pool = 0; pool < plan.cluster().pools(); ++pool)
    sell_pool(view, plan, pod, PoolId{pool});
  give_back(view, plan);
  give_leftovers(view, plan, pod);
  Arbiter& arbiter = books_[pod];
  arbiter.changed = false;
  arbiter.next_round = arbiter.held_back.empty() ? kNever : view.now + options_.interval;
}

Sale::Candidate Sale::candidate(const View& view, JobId job, PoolId pool) const {
  Candidate candidate{job, pool, agents_.bidder_of(view, job, pool)};
  candidate.plight = agents_.plight_of(candidate.bidder);
  return candidate;
}

/// Holders whose lease is over put their devices up for sale and bid for them like the others.
void Sale::end_leases(const View& view, Plan& plan, Arbiter& arbiter) {
  while (arbiter.has_ended_lease(view.now) && candidates_.size() < kMostVisible) {
    const JobId job = arbiter.ends.begin()->second;
    Candidate holder = candidate(view, job, plan.pool_of(job));
    holder.bidder.bids.front().badness *= 1 - options_.switching_credit;
    holder.holding = holdings_.size();
    candidates_.push_back(std::move(holder));
    holdings_.push_back(grants_.holding_of(plan, job));
    books_.end_lease(job);
    plan.preempt(job, Reason::Lease);
  }
}

/// The first of every class that fits by numbers, in the first pool it does.
void Sale::add_waiting(const View& view, const Plan& plan, PodId pod) {
  const ClusterState& state = plan.cluster();
  for (const auto& [key, jobs] : books_[pod].waiting) {
    const Shape& shape = view.shapes[key.first];
    const auto pool = std::ranges::find_if(
        shape.pools, [&](PoolId id) { return books_.pods().may_hold(state, pod, id, shape); });
    if (pool == shape.pools.end()) continue;
    const std::int64_t gangs = books_.pods().free_gpus(state, pod, *pool) / shape.gpus + 1;
    auto most = std::min<std::size_t>(kFirstOfClass, static_cast<std::size_t>(gangs));
    for (const JobId job : jobs) {
      if (most-- == 0) break;
      candidates_.push_back(candidate(view, job, *pool));
    }
  }
}

/// Only the worst-off part of the agents sees the offer; old holders see it whatever they are.
void Sale::hide_offers() {
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return std::tuple(!a.is_holder(), -a.plight, a.job) <
           std::tuple(!b.is_holder(), -b.plight, b.job);
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

void Sale::sell_pool(const View& view, Plan& plan, PodId pod, PoolId pool) {
  std::vector<const Candidate*> members;
  std::vector<Bidder> bidders;
  for (const Candidate& candidate : candidates_) {
    if (candidate.pool != pool) continue;
    members.push_back(&candidate);
    bidders.push_back(candidate.bidder);
  }
  if (members.empty()) return;
  const auto free = static_cast<std::int32_t>(
      std::min<std::int64_t>(books_.pods().free_gpus(plan.cluster(), pod, pool), 1'000'000));
  const Choice choice = solve_auction(bidders, free);
  const std::vector<double> parts = options_.payment == Payment::Charged
                                        ? payments(bidders, free, choice)
                                        : std::vector<double>(bidders.size(), 1);
  // holders first: they come before newcomers in the order, and stay where they are
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Candidate& bidder = *members[i];
    const bool won = choice[i].has_value();
    if (bidder.is_holder()) {
      if (!won || !grants_.restart(view, plan, holdings_[bidder.holding], renewal(parts[i])))
        losers_.push_back(bidder.holding);
    } else if (won) {
      static_cast<void>(grants_.start_in(view, plan, bidder.job, pod, pool, lease_for(parts[i])));
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
void Sale::give_back(const View& view, Plan& plan) {
  for (const std::size_t loser : losers_) {
    if (!grants_.restart(view, plan, holdings_[loser], renewal(1)))
      books_.wait(view, holdings_[loser].job);
  }
}

/// How much slower than at its best a job would be in the place that is left for it.
double Sale::harm_of(const View& view, const Plan& plan, JobId job, PodId pod) {
  const Shape& shape = view.shape(job);
  const ClusterState& state = plan.cluster();
  const bool all_alike = options_.leftover == agents::Leftover::Plight ||
                         !view.believed().effects().locality || !grants_.has_places(state, shape);
  if (all_alike) return 0;
  for (const PoolId pool : shape.pools) {
    if (const auto match = grants_.find_accepted(view, state, job, pod, pool))
      return agents_.slowdown_at(view, job, pool, match->level) - 1;
  }
  return 0;
}

/// Nothing idles that somebody could use. A head that fits by numbers and finds no place close
/// enough is held back, and all of its class with it.
void Sale::give_leftovers(const View& view, Plan& plan, PodId pod) {
  Arbiter& arbiter = books_[pod];
  const auto fits_by_numbers = [&](const Shape& shape) {
    return std::ranges::any_of(shape.pools, [&](PoolId pool) {
      return books_.pods().may_hold(plan.cluster(), pod, pool, shape);
    });
  };
  leftovers_.clear();
  for (const auto& [key, jobs] : arbiter.waiting) {
    const Shape& shape = view.shapes[key.first];
    if (!fits_by_numbers(shape)) continue;
    const JobId head = *jobs.begin();
    const Bidder bidder = agents_.bidder_of(view, head, shape.pools.front());
    leftovers_.push_back({harm_of(view, plan, head, pod), agents_.plight_of(bidder), head, key});
  }
  std::ranges::sort(leftovers_, [](const Leftover& a, const Leftover& b) {
    return std::tuple(a.harm, -a.plight, a.head) < std::tuple(b.harm, -b.plight, b.head);
  });
  arbiter.held_back.clear();
  for (const Leftover& next : leftovers_) {
    auto found = arbiter.waiting.find(next.key);
    while (found != arbiter.waiting.end() && grants_.start(view, plan, *found->second.begin(), pod))
      found = arbiter.waiting.find(next.key);
    if (found != arbiter.waiting.end() && fits_by_numbers(view.shapes[next.key.first]))
      arbiter.held_back.push_back(*found->second.begin());
  }
}

}  // namespace berth::agents
