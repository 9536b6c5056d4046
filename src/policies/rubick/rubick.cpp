#include "policies/rubick/rubick.h"

#include <algorithm>

namespace berth::rubick {

namespace {
constexpr Duration kLook = std::chrono::minutes{5};  // at gains that a restart would eat now
}

bool Rubick::is_sized(const View& view, JobId job) {
  const Shape& shape = view.shape(job);
  return shape.gpus > 0 && !shape.is_fraction();
}

void Rubick::on_arrival(const View& view, JobId job) {
  (is_sized(view, job) ? waiting_ : unsized_).insert(job);
  has_changed_ = true;
}

void Rubick::note_stop(const View& view, JobId job) {
  if (running_.erase(job) > 0) used_[view.request(job).queue] -= rows_[job.value].guaranteed;
  rows_[job.value].guaranteed = 0;
}

void Rubick::on_departure(const View& view, JobId job) {
  note_stop(view, job);
  waiting_.erase(job);
  unsized_.erase(job);
  has_changed_ = true;
}

void Rubick::on_requeue(const View& view, JobId job) {
  note_stop(view, job);
  on_arrival(view, job);
}

/// The whole batch stays what it is: each GPU has its part, in sub-batches no larger than before.
Terms Rubick::terms_for(const View& view, JobId job, std::int32_t gpus) const {
  Terms terms;
  const std::int32_t wanted = view.gpus(job);
  if (gpus == wanted || !view.can(Ability::Batch) || !view.can(Ability::SubBatch)) return terms;
  const std::int32_t known = view.jobs.batch[job];
  const std::int32_t own =
      known > 0 ? known : std::max(1, view.believed().profile(view.jobs.profile[job]).batch);
  terms.batch = std::max(1, static_cast<std::int32_t>(std::int64_t{own} * wanted / gpus));
  terms.sub_steps = std::max(1, (terms.batch + own - 1) / own);
  return terms;
}

double Rubick::speed(const View& view, JobId job, PoolId pool, std::int32_t gpus) const {
  return view.believed().alone({.profile = view.jobs.profile[job],
                                .pool = pool,
                                .reference = view.jobs.reference[job],
                                .gpus = gpus,
                                .wanted = view.gpus(job),
                                .batch = view.jobs.batch[job],
                                .level = view.believed().best_level(pool, gpus),
                                .terms = terms_for(view, job, gpus)});
}

/// Powers of two, what was asked for and what was measured, each faster than all smaller ones.
const SpeedCurve& Rubick::curve(const View& view, JobId job, PoolId pool) {
  const ElasticRange range = elastic_range(view, job, options_.elastic);
  const std::int32_t wanted = view.gpus(job);
  const auto [entry, is_new] =
      curves_.try_emplace(Kind{view.jobs.profile[job], pool, view.jobs.reference[job], wanted,
                               view.jobs.batch[job], range.least, range.most});
  SpeedCurve& curve = entry->second;
  if (!is_new) return curve;
  const Profile& profile = view.believed().profile(view.jobs.profile[job]);
  const std::int32_t known = view.jobs.batch[job];
  const std::int64_t samples =
      std::int64_t{known > 0 ? known : std::max(1, profile.batch)} * wanted;
  const auto pool_gpus = view.cluster.cluster().total_gpus(pool);
  std::set<std::int32_t> sizes{wanted};
  const auto add = [&](std::int32_t gpus) {
    if (gpus >= range.least && gpus <= range.most && gpus <= samples && gpus <= pool_gpus)
      sizes.insert(gpus);
  };
  for (std::int32_t gpus = 1; gpus <= range.most; gpus *= 2) add(gpus);
  for (const MeasuredTime& row : profile.measured) add(row.gpus);
  for (const std::int32_t gpus : sizes) {
    const double fast = speed(view, job, pool, gpus);
    if (!curve.speed.empty() && fast <= curve.speed.back()) continue;
    curve.gpus.push_back(gpus);
    curve.speed.push_back(fast);
  }
  return curve;
}

/// Beside what its queue holds and those before it in this pass ask for.
bool Rubick::fits_quota(const View& view, JobId job, std::int32_t gpus) {
  const NameId queue = view.request(job).queue;
  const auto named = std::ranges::find(options_.quotas, view.text(queue),
                                       [](const auto& quota) { return quota.first; });
  if (named == options_.quotas.end()) return true;
  const auto after = static_cast<double>(used_[queue] + asked_[queue] + gpus);
  if (after > named->second * static_cast<double>(view.cluster.cluster().total_gpus()))
    return false;
  asked_[queue] += gpus;
  return true;
}

Demand Rubick::demand(const View& view, const Plan& plan, JobId job, PoolId pool) {
  const SpeedCurve& speeds = curve(view, job, pool);
  Demand demand{.curve = &speeds,
                .wanted = options_.guarantee * speed(view, job, pool, view.gpus(job))};
  if (!plan.holds(job)) {
    demand.within_quota = fits_quota(view, job, speeds.gpus[demand.guarantee()]);
    return demand;
  }
  // A size the placement fell back to may not be on the curve: it counts as the next smaller one.
  const auto next = std::ranges::upper_bound(speeds.gpus, plan.gpus_of(job));
  demand.size =
      next == speeds.gpus.begin() ? 0 : static_cast<std::size_t>(next - speeds.gpus.begin()) - 1;
  demand.restart = restart_factor(to_seconds(view.now - view.jobs.first_start[job]),
                                  to_seconds(options_.restart), rows_[job.value].restarts);
  may_gain_later_ = may_gain_later_ || (demand.can_grow() && demand.restart < 1);
  return demand;
}

void Rubick::serve_pool(const View& view, Plan& plan, PoolId pool) {
  demands_.clear();
  jobs_.clear();
  asked_.clear();
  const auto add = [&](JobId job) {
    jobs_.push_back(job);
    demands_.push_back(demand(view, plan, job, pool));
  };
  for (const JobId job : running_)
    if (plan.pool_of(job) == pool) add(job);
  const std::size_t holding = jobs_.size();
  for (const JobId job : waiting_) {
    const auto& pools = view.shape(job).pools;
    if (std::ranges::find(pools, pool) != pools.end()) add(job);
    // Whoever waits behind more than the pool has cannot be reached in this pass.
    if (static_cast<std::int64_t>(jobs_.size() - holding) > plan.cluster().usable_gpus(pool)) break;
  }
  sizes_before_.clear();
  for (const Demand& row : demands_) sizes_before_.push_back(row.size);
  static_cast<void>(allocate(demands_, plan.cluster().free_gpus(pool), options_.waiting));
  targets_.clear();
  for (std::size_t i = 0; i < jobs_.size(); ++i) {  // a size off the curve may stay what it is
    if (demands_[i].size != sizes_before_[i])
      targets_.push_back({jobs_[i], i < holding ? plan.gpus_of(jobs_[i]) : 0, demands_[i].held()});
  }
  carry_out(view, plan, pool);
}

/// Shrinks first, so that the others find room; then those who wait, then growth.
void Rubick::carry_out(const View& view, Plan& plan, PoolId pool) {
  for (const Target& target : targets_)
    if (target.gpus < target.before) change(view, plan, pool, target);
  for (const Target& target : targets_) {
    if (target.before == 0 && !start_waiting(view, plan, pool, target) &&
        options_.waiting == Waiting::Strict)
      break;
  }
  for (const Target& target : targets_)
    if (target.before > 0 && target.gpus > target.before) change(view, plan, pool, target);
}

bool Rubick::start(const View& view, Plan& plan, PoolId pool, JobId job, std::int32_t gpus) {
  const Plan::Mark mark = plan.mark();
  if (plan.set_terms(job, terms_for(view, job, gpus)) &&
      plan.try_start_sized(pool, job, gpus, Reason::Growth))
    return true;
  plan.rollback(mark);
  return false;
}

/// Where the chosen size finds no place, what it asked for or a smaller size may.
bool Rubick::start_waiting(const View& view, Plan& plan, PoolId pool, const Target& target) {
  const SpeedCurve& speeds = curve(view, target.job, pool);
  bool started = start(view, plan, pool, target.job, target.gpus) ||
                 start(view, plan, pool, target.job, view.gpus(target.job));
  for (std::size_t i = speeds.sizes(); i-- > 0 && !started;)
    started = speeds.gpus[i] < target.gpus && start(view, plan, pool, target.job, speeds.gpus[i]);
  if (started) note_start(view, plan, target.job, pool);
  return started;
}

void Rubick::note_start(const View& view, Plan& plan, JobId job, PoolId pool) {
  waiting_.erase(job);
  running_.insert(job);
  const Demand now = demand(view, plan, job, pool);
  rows_[job.value].guaranteed = now.curve->gpus[now.guarantee()];
  used_[view.request(job).queue] += rows_[job.value].guaranteed;
}

void Rubick::change(const View& view, Plan& plan, PoolId pool, const Target& target) {
  const Plan::Mark mark = plan.mark();
  plan.preempt(target.job, Reason::Growth);
  if (start(view, plan, pool, target.job, target.gpus)) {
    ++rows_[target.job.value].restarts;
  } else {
    plan.rollback(mark);
  }
}

void Rubick::start_unsized(Plan& plan) {
  std::erase_if(unsized_, [&](JobId job) { return plan.try_start(job); });
}

void Rubick::decide(const View& view, Plan& plan, Rng&) {
  const bool looks = may_gain_later_ && view.now >= last_look_ + kLook;
  if (!has_changed_ && !looks) return;
  last_look_ = view.now;
  has_changed_ = false;
  may_gain_later_ = false;
  start_unsized(plan);
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) serve_pool(view, plan, PoolId{i});
}

std::optional<Time> Rubick::next_wakeup(const View& view) {
  if (!may_gain_later_ || view.cluster.free_gpus() == 0) return std::nullopt;
  return std::max(last_look_ + kLook, view.now + Duration{1});
}

}  // namespace berth::rubick

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  rubick::Options options;
  BERTH_TRY(options.guarantee, params.number("guarantee", 0.01, 1));
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(const std::size_t pass, params.choice("pass", {"strict", "skip"}));
  options.waiting = pass == 0 ? rubick::Waiting::Strict : rubick::Waiting::Skip;
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(const auto quotas, params.named_numbers("quotas"));
  for (const auto& [name, numbers] : quotas) {
    if (numbers.size() != 1 || !(numbers[0] > 0 && numbers[0] <= 1))
      return params.wrong("quotas", "must be NAME:SHARE with a share above 0 and at most 1");
    options.quotas.emplace_back(name, numbers[0]);
  }
  return std::make_unique<rubick::Rubick>(std::move(options));
}

}  // namespace

PolicyEntry rubick_entry() {
  PolicyEntry entry{
      .name = "rubick",
      .summary =
          "fewest GPUs for the promised speed by the best plan, the rest to whoever gains most",
      .params = {{"guarantee", "1", "share of the speed at the requested size that is promised"},
                 {"restart", "3m", "what a change of size is taken to cost"},
                 {"pass", "strict",
                  "strict: nobody overtakes a job that cannot be guaranteed; skip: try the next"},
                 {"quotas", "",
                  "shares of the cluster by queue, as in a:0.5,b:0.2: beyond it nobody shrinks for "
                  "a job"}},
      .make = make};
  const auto elastic = elastic_params();
  entry.params.insert(entry.params.end(), elastic.begin(), elastic.end());
  return entry;
}

}  // namespace berth
