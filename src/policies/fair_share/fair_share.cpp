#include "policies/fair_share/fair_share.h"

#include <algorithm>

namespace berth {

void FairShare::begin(const View& view) {
  running_.begin(1, view.cluster.pools(), view.jobs.size());
  reservation_.begin(view);
  leaf_.resize(view.jobs.size());
  holder_at_.resize(view.jobs.size());
}

// --- who waits

AccountId FairShare::leaf_of(const View& view, JobId job) {
  const JobRequest& request = view.request(job);
  return accounts_.leaf(view.text(request.user), view.text(request.group));
}

void FairShare::push(const View& view, JobId job) {
  const LaneKey key{view.request(job).priority, leaf_[job.value], view.jobs.shape[job]};
  const auto [entry, is_new] = lane_at_.try_emplace(key, static_cast<std::uint32_t>(lanes_.size()));
  if (is_new) lanes_.push_back({.key = key, .jobs = {}});
  Lane& lane = lanes_[entry->second];
  if (!lane.is_active) active_.push_back(entry->second);
  lane.is_active = true;
  lane.jobs.insert(job, view.estimated_left(job));
}

void FairShare::on_arrival(const View& view, JobId job) {
  accounts_.settle(view.now);
  leaf_[job.value] = leaf_of(view, job);
  push(view, job);
}

void FairShare::on_entitlements(const View& view, const Entitlements& said) {
  accounts_.settle(view.now);
  std::map<std::string, double, std::less<>> shares;
  for (const auto& [who, own] : said.shares) shares[who] = own;
  accounts_.set_shares(std::move(shares));
  for (const auto& [user, group, gpu_seconds] : said.uses)
    accounts_.add_use(accounts_.leaf(user, group), gpu_seconds);
}

void FairShare::on_departure(const View& view, JobId job) {
  if (running_.contains(job)) let_go(view, job);  // one that waited is dropped when it surfaces
}

void FairShare::on_requeue(const View& view, JobId job) {
  let_go(view, job);
  push(view, job);
}

// --- who holds devices

void FairShare::hold(const View& view, const Plan& plan, JobId job) {
  const PoolId pool = plan.pool_of(job);
  accounts_.hold(leaf_[job.value], view.gpus(job));
  reservation_.ends().add(view, pool, job);
  running_.add(0, pool, {.klass = effective_class(view, job), .started = view.now, .job = job},
               view.gpus(job));
  holder_at_[job.value] = static_cast<std::uint32_t>(holders_.size());
  holders_.push_back(job);
  fresh_.push_back({job, view.now});
}

void FairShare::let_go(const View& view, JobId job) {
  accounts_.settle(view.now);
  accounts_.hold(leaf_[job.value], -std::int64_t{view.gpus(job)});
  reservation_.ends().remove(job);
  if (running_.contains(job)) running_.remove(job);
  const std::uint32_t at = holder_at_[job.value];
  holders_[at] = holders_.back();
  holder_at_[holders_[at].value] = at;
  holders_.pop_back();
}

/// A job that ran before this policy knew it has used its devices since then.
void FairShare::charge_adopted(const View& view) {
  for (const auto& [job, at] : fresh_) {
    if (!running_.contains(job) || view.jobs.held_from[job] >= at) continue;
    accounts_.charge(leaf_[job.value], view.gpus(job), view.jobs.held_from[job], at);
  }
  fresh_.clear();
}

// --- order

/// Counted from submission, so inside a lane the order of arrival is always the right order.
std::int32_t FairShare::effective_class(const View& view, JobId job) const {
  const std::int32_t own = view.request(job).priority;
  if (options_.aging_interval <= Duration::zero() || own >= options_.max_class) return own;
  const std::int64_t steps = (view.now - view.jobs.submitted[job]) / options_.aging_interval;
  return static_cast<std::int32_t>(std::min<std::int64_t>(options_.max_class, own + steps));
}

FairShare::Rank FairShare::rank_of(const View& view, const LaneKey& key, JobId job) const {
  const std::int32_t gpus = view.shapes[key.shape].gpus;
  return {.klass = -std::int64_t{effective_class(view, job)},
          .top = accounts_.standing(accounts_.top(key.leaf)),
          .leaf = accounts_.standing(key.leaf),
          .size = options_.size == SizeRule::Neutral ? 0
                  : options_.size == SizeRule::Small ? gpus
                                                     : -gpus,
          .job = job};
}

std::optional<std::uint32_t> FairShare::first_lane(const View& view) const {
  std::optional<std::uint32_t> first;
  Rank best;
  for (const std::uint32_t at : active_) {
    const Lane& lane = lanes_[at];
    if (lane.jobs.empty()) continue;
    const Rank rank = rank_of(view, lane.key, lane.jobs.first()->job);
    if (first && !(rank < best)) continue;
    first = at;
    best = rank;
  }
  return first;
}

// --- the pass

/// A job that was evicted a moment ago still counts as running: only what is over goes.
void FairShare::drop_over(const View& view, Lane& lane) {
  for (auto first = lane.jobs.first(); first && is_over(view.jobs.state[first->job]);
       first = lane.jobs.first()) {
    lane.jobs.erase(first->position);
  }
}

void FairShare::begin_pass(const View& view) {
  accounts_.settle(view.now);
  charge_adopted(view);
  reservation_.ends().refresh(view);
  evicted_.clear();
  std::erase_if(active_, [&](std::uint32_t at) {
    Lane& lane = lanes_[at];
    drop_over(view, lane);
    lane.is_active = !lane.jobs.empty();
    return !lane.is_active;
  });
}

bool FairShare::start_first(const View& view, Plan& plan, std::uint32_t lane) {
  const auto first = *lanes_[lane].jobs.first();
  lanes_[lane].jobs.erase(first.position);  // whoever is evicted may come into this very lane
  if (!plan.try_start(first.job) && !try_preempt(view, plan, first.job)) {
    lanes_[lane].jobs.restore(first.position, view.estimated_left(first.job));
    return false;
  }
  drop_over(view, lanes_[lane]);
  hold(view, plan, first.job);
  return true;
}

bool FairShare::has_room_for_any(const View& view) const {
  return std::ranges::any_of(active_, [&](std::uint32_t at) {
    const Lane& lane = lanes_[at];
    const Shape& shape = view.shapes[lane.key.shape];
    return !lane.jobs.empty() && std::ranges::any_of(shape.pools, [&](PoolId pool) {
      return view.cluster.free_gpus(pool) >= shape.gpus;
    });
  });
}

void FairShare::decide(const View& view, Plan& plan, Rng&) {
  begin_pass(view);
  auto head = first_lane(view);
  while (head && start_first(view, plan, *head)) head = first_lane(view);
  if (!head || !has_room_for_any(view)) return;
  reservation_.make(view, plan, view.shapes[lanes_[*head].key.shape]);
  backfill(view, plan, *head);
}

/// Free GPUs and what is left beside the reservation only shrink, so taking the first job that
/// qualifies again and again is a walk in order; each start moves its account back.
void FairShare::backfill(const View& view, Plan& plan, std::uint32_t head) {
  const auto first = *lanes_[head].jobs.first();
  const Duration estimate = view.estimated_left(first.job);
  lanes_[head].jobs.erase(first.position);  // the head itself is no candidate
  for (const std::uint32_t at : active_) lanes_[at].is_blocked = false;
  while (const auto candidate = next_candidate(view)) try_backfill(view, plan, *candidate);
  lanes_[head].jobs.restore(first.position, estimate);
}

std::optional<FairShare::Candidate> FairShare::next_candidate(const View& view) const {
  std::optional<Candidate> best;
  for (const std::uint32_t at : active_) {
    const Lane& lane = lanes_[at];
    if (lane.is_blocked || lane.jobs.empty()) continue;
    const Shape& shape = view.shapes[lane.key.shape];
    for (const PoolId pool : shape.pools) {
      if (view.cluster.free_gpus(pool) < shape.gpus) continue;
      const auto window = reservation_.window(view, shape, pool);
      const auto found = window ? lane.jobs.first_at_most(*window) : lane.jobs.first();
      if (!found) continue;
      const Rank rank = rank_of(view, lane.key, found->job);
      if (best && !(rank < best->rank)) continue;
      best = Candidate{.lane = at, .found = *found, .pool = pool, .rank = rank};
    }
  }
  if (best) best->outlasts = reservation_.outlasts(view, best->pool, best->found.job);
  return best;
}

void FairShare::try_backfill(const View& view, Plan& plan, const Candidate& candidate) {
  Lane& lane = lanes_[candidate.lane];
  const JobId job = candidate.found.job;
  if (is_over(view.jobs.state[job])) {
    lane.jobs.erase(candidate.found.position);
    return;
  }
  const Plan::Mark mark = plan.mark();
  if (!plan.try_start_in(candidate.pool, job, Reason::Backfill)) {
    lane.is_blocked = true;
    return;
  }
  if (candidate.outlasts && !reservation_.spares(view, plan, job)) {
    plan.rollback(mark);
    lane.is_blocked = true;  // its likes would be placed the same way
    return;
  }
  lane.jobs.erase(candidate.found.position);
  hold(view, plan, job);
}

}  // namespace berth

namespace berth {

namespace {

Result<void> read_accounts(const Params& params, Accounts& accounts) {
  BERTH_TRY(const auto shares, params.named_numbers("shares"));
  for (const auto& [who, numbers] : shares) {
    if (numbers.size() != 1 || numbers.front() <= 0 || numbers.front() > 1e9)
      return params.wrong("shares", "must be WHO:SHARE with shares above zero");
    accounts.set_share(who, numbers.front());
  }
  BERTH_TRY(const auto usage, params.named_numbers("usage"));
  for (const auto& [who, numbers] : usage) {
    if (numbers.size() != 1 || numbers.front() > 1e15)
      return params.wrong("usage", "must be WHO:GPU-SECONDS");
    accounts.add_use(who, numbers.front());
  }
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  FairShareOptions options;
  BERTH_TRY(options.accounts.half_life, params.duration("half_life"));
  BERTH_TRY(options.accounts.advance, params.duration("advance"));
  BERTH_TRY(const auto preempt, params.choice("preempt", {"off", "priority", "share", "both"}));
  options.by_class = preempt == 1 || preempt == 3;
  options.by_share = preempt == 2 || preempt == 3;
  BERTH_TRY(options.min_run, params.duration("min_run"));
  BERTH_TRY(options.margin, params.number("margin", 0, 1e6));
  if (options.by_share &&
      (options.min_run <= Duration::zero() || options.accounts.advance <= Duration::zero()))
    return params.wrong("preempt",
                        "by share needs min_run and advance above zero: without them "
                        "jobs of equals would take turns for ever");
  BERTH_TRY(options.aging_interval, params.duration("aging_interval"));
  BERTH_TRY(const auto max_class, params.integer("max_class", -1'000'000, 1'000'000));
  options.max_class = static_cast<std::int32_t>(max_class);
  BERTH_TRY(const auto size, params.choice("size", {"neutral", "small", "large"}));
  options.size = static_cast<SizeRule>(size);
  auto policy = std::make_unique<FairShare>(options);
  BERTH_TRY_VOID(read_accounts(params, policy->accounts()));
  return policy;
}

}  // namespace

PolicyEntry fair_share_entry() {
  return {
      .name = "fair-share",
      .summary = "fair share of GPU time over groups and users, with priorities and a reservation",
      .params =
          {{"shares", "", "WHO:SHARE, comma separated; who is alice, group/ml or group/ml/alice"},
           {"usage", "", "WHO:GPU-SECONDS used before the run, comma separated"},
           {"half_life", "7d", "seconds in which use counts half; 0 = it is never forgotten"},
           {"advance", "10m", "seconds that a GPU counts in advance while it is held"},
           {"preempt", "off", "who may take GPUs: off, priority (from lower classes), share, both"},
           {"min_run", "10m", "seconds a job runs before it can be preempted"},
           {"margin", "0.25", "by how much an account stands better before it takes GPUs by share"},
           {"aging_interval", "0",
            "seconds of age that raise a waiting job by one class; 0 = no aging"},
           {"max_class", "10", "class up to which aging raises a job"},
           {"size", "neutral", "between jobs of one standing: neutral, small first, large first"}},
      .make = make,
      .test_settings = {
          {"preempt", "both"}, {"min_run", "5"}, {"advance", "3"}, {"half_life", "30"}}};
}

}  // namespace berth
