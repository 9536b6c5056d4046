#include "policies/gavel/turns.h"

#include <algorithm>
#include <tuple>

namespace berth::gavel {

namespace {

struct Placing {
  const Candidate* candidate;
  PoolId pool;
  JobId leader;  // of a pair: whose devices the other shares
  bool stays = false;
};

/// The leader of a pair is the one that is on that type already.
std::vector<Placing> placings(const Plan& plan, const Candidates& candidates,
                              std::span<const Pick> picks) {
  const auto is_there = [&](JobId job, PoolId pool) {
    return plan.holds(job) && plan.pool_of(job) == pool;
  };
  std::vector<Placing> order;
  order.reserve(picks.size());
  for (const Pick& pick : picks) {
    const Candidate& candidate = candidates[pick.candidate];
    Placing placing{.candidate = &candidate, .pool = pick.pool, .leader = candidate.job};
    placing.stays = is_there(candidate.job, pick.pool);
    if (!placing.stays && candidate.partner && is_there(*candidate.partner, pick.pool)) {
      placing.leader = *candidate.partner;
      placing.stays = true;
    }
    order.push_back(placing);
  }
  return order;
}

/// GPUs of those that found no place.
std::int64_t place(Plan& plan, std::span<const Placing> order) {
  std::int64_t unplaced = 0;
  for (const Placing& placing : order) {
    const Candidate& candidate = *placing.candidate;
    if (!plan.try_start_in(placing.pool, placing.leader, Reason::TimeSlice)) {
      unplaced += candidate.gpus;
      continue;
    }
    if (!candidate.partner) continue;
    const JobId other = placing.leader == candidate.job ? *candidate.partner : candidate.job;
    // If there is no room for two after all, the leader has its devices to itself.
    static_cast<void>(plan.try_share_on(other, placing.pool, devices_of(plan, placing.leader), 2,
                                        Reason::Packing));
  }
  return unplaced;
}

/// Somebody found no place on its type: it may go elsewhere, and others to what it left free.
void fill_rest(Pass& pass, const Candidates& candidates, std::span<const Placing> order) {
  const auto is_left_out = [&](JobId job) {
    return !pass.plan.holds(job) && pass.plan.has_room(pass.view.shape(job));
  };
  std::vector<JobId> rest;
  for (const Placing& placing : order) {
    if (is_left_out(placing.leader))
      static_cast<void>(pass.plan.try_start(placing.leader, Reason::Backfill));
  }
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    if (is_left_out(candidates[i].job)) rest.push_back(candidates[i].job);
  }
  std::ranges::sort(rest);
  for (const JobId job : rest) {
    if (is_left_out(job)) static_cast<void>(pass.plan.try_start(job, Reason::Backfill));
  }
}

}  // namespace

void Turns::leave(const View& view, JobId job, Candidates& candidates) {
  Turn& turn = turns_[job];
  // Its claims leave with it, but the others' parts are parts of all time, this one included.
  if (turn.pool)
    candidates.receive_gone(*turn.pool, to_seconds(view.jobs.held[job] - turn.attained));
  turn.pool.reset();
}

void Turns::lose(const View& view, JobId job, Candidates& candidates) {
  count_time(view, job, candidates);
  turns_[job].pool.reset();
}

void Turns::count_time(const View& view, Candidates& candidates) {
  candidates.elapse(to_seconds(view.now - counted_));
  std::erase_if(running_, [&](JobId job) { return !turns_[job].pool; });
  for (const JobId job : running_) count_time(view, job, candidates);
  counted_ = view.now;
}

void Turns::count_time(const View& view, JobId job, Candidates& candidates) {
  // By time held, not by time passed: a job that lost its node in between was not served since.
  Turn& turn = turns_[job];
  const Duration attained = view.jobs.attained(job, view.now);
  const double seconds = to_seconds(attained - turn.attained);
  turn.attained = attained;
  if (!turn.pool) return;
  if (!turn.partner) return candidates.receive(candidates.alone(job), *turn.pool, seconds);
  // What two ran together counts once, for the pair; the smaller JobId stands first in it.
  if (*turn.partner < job) return;
  if (const auto pair = candidates.find_pair(job, *turn.partner))
    candidates.receive(*pair, *turn.pool, seconds);
}

std::vector<Pick> Turns::still_starting(const View& view, const Candidates& candidates) const {
  std::vector<Pick> kept;
  for (const JobId job : running_) {
    if (!turns_[job].partner && view.jobs.work_from[job] >= view.now)
      kept.push_back({candidates.alone(job), *turns_[job].pool});
  }
  return kept;
}

void Turns::carry_out(Pass& pass, const Candidates& candidates, std::span<const Pick> picks) {
  Plan& plan = pass.plan;
  std::vector<Placing> order = placings(plan, candidates, picks);
  for (const JobId job : running_) plan.preempt(job, Reason::Lease);
  const Plan::Mark empty = plan.mark();
  // Those that stay first, then the largest: what is left is in the largest pieces.
  std::ranges::stable_sort(order, {}, [](const Placing& placing) {
    return std::tuple(!placing.stays, -placing.candidate->gpus);
  });
  if (const std::int64_t unplaced = place(plan, order); unplaced > 0) {
    // Free devices lie scattered: pack anew, the largest first, if that helps.
    std::vector<Placing> largest_first = order;
    std::ranges::stable_sort(largest_first, {}, [](const Placing& placing) {
      return std::tuple(-placing.candidate->gpus, !placing.stays);
    });
    plan.rollback(empty);
    if (place(plan, largest_first) >= unplaced) {
      plan.rollback(empty);
      place(plan, order);
    }
    fill_rest(pass, candidates, order);
  }
  remember(pass, candidates);
}

void Turns::start_waiting(Pass& pass, const Candidates& candidates) {
  std::vector<JobId> waiting;
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    const JobId job = candidates[i].job;
    if (!candidates[i].partner && !pass.plan.holds(job)) waiting.push_back(job);
  }
  std::ranges::sort(waiting);
  blocked_.clear();
  for (const JobId job : waiting) {
    if (!try_start_unblocked(pass.plan, blocked_, job, Reason::Backfill)) continue;
    turns_[job] = {.pool = pass.plan.pool_of(job),
                   .partner = {},
                   .attained = pass.view.jobs.attained(job, pass.view.now)};
    // It may be there from the last round, if it has lost its devices since.
    const auto at = std::ranges::lower_bound(running_, job);
    if (at == running_.end() || *at != job) running_.insert(at, job);
  }
}

void Turns::remember(const Pass& pass, const Candidates& candidates) {
  const Plan& plan = pass.plan;
  running_.clear();
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].partner) continue;
    const JobId job = candidates[i].job;
    Turn& turn = turns_[job];
    turn.pool.reset();
    turn.partner.reset();
    if (!plan.holds(job)) continue;
    turn.pool = plan.pool_of(job);
    turn.attained = pass.view.jobs.attained(job, pass.view.now);
    running_.push_back(job);
  }
  std::ranges::sort(running_);
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    const Candidate& pair = candidates[i];
    if (!pair.partner || !plan.holds(pair.job) || !plan.holds(*pair.partner)) continue;
    if (!std::ranges::equal(plan.slices(pair.job), plan.slices(*pair.partner))) continue;
    turns_[pair.job].partner = pair.partner;
    turns_[*pair.partner].partner = pair.job;
  }
}

}  // namespace berth::gavel
