#include "policies/rubick/rubick.h"

#include <algorithm>

#include "policies/common/restart_factor.h"
#include "policies/kit/beliefs.h"

namespace berth::rubick {

namespace {

constexpr Duration kLook = std::chrono::minutes{5};  // at gains that a restart would eat now

/// Of its own gang, per GPU.
std::int32_t own_batch(const View& view, JobId job) {
  const Kind& kind = view.kind(job);
  return kind.batch > 0 ? kind.batch : std::max(1, view.believed().profile(kind.profile).batch);
}

}  // namespace

void Rubick::on_arrival(const View& view, JobId job) {
  const Shape& shape = view.shape(job);
  (shape.gpus > 0 && !shape.is_fraction() ? waiting_ : unsized_).insert(job);
  rounds_.stir(view.now);
}

void Rubick::note_stop(const View& view, JobId job) {
  if (running_.erase(job) > 0) used_[view.request(job).queue] -= rows_[job].guaranteed;
  rows_[job].guaranteed = 0;
}

void Rubick::on_departure(const View& view, JobId job) {
  note_stop(view, job);
  waiting_.erase(job);
  unsized_.erase(job);
  rounds_.stir(view.now);
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
  const std::int32_t own = own_batch(view, job);
  terms.batch = std::max(1, static_cast<std::int32_t>(std::int64_t{own} * wanted / gpus));
  terms.sub_steps = std::max(1, (terms.batch + own - 1) / own);
  return terms;
}

double Rubick::speed(const View& view, JobId job, PoolId pool, std::int32_t gpus) const {
  Standing standing = standing_of(view, view.jobs.kind[job], pool, gpus);
  standing.terms = terms_for(view, job, gpus);
  return view.believed().alone(standing);
}

const SpeedCurve& Rubick::curve(const View& view, JobId job, PoolId pool) {
  Memo<PoolId, SpeedCurve>& in_pools = curves_.of(view.jobs.kind[job]);
  return in_pools.of(pool, [&] { return make_curve(view, job, pool); });
}

/// Powers of two, what was asked for and what was measured, each faster than all smaller ones.
SpeedCurve Rubick::make_curve(const View& view, JobId job, PoolId pool) const {
  const ElasticRange range = elastic_range(view, job, options_.elastic);
  const std::int32_t wanted = view.gpus(job);
  const std::int64_t samples = std::int64_t{own_batch(view, job)} * wanted;
  const auto pool_gpus = view.cluster.cluster().total_gpus(pool);
  std::set<std::int32_t> sizes{wanted};
  const auto add = [&](std::int32_t gpus) {
    if (gpus >= range.least && gpus <= range.most && gpus <= samples && gpus <= pool_gpus)
      sizes.insert(gpus);
  };
  for (std::int32_t gpus = 1; gpus <= range.most; gpus *= 2) add(gpus);
  for (const MeasuredTime& row : view.believed().profile(view.jobs.profile[job]).measured)
    add(row.gpus);
  SpeedCurve curve;
  for (const std::int32_t gpus : sizes) curve.add(gpus, speed(view, job, pool, gpus));
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

Demand Rubick::demand(const Pass& pass, JobId job, PoolId pool) {
  const View& view = pass.view;
  const Plan& plan = pass.plan;
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
                                  rows_[job].restarts, to_seconds(options_.restart));
  may_gain_later_ = may_gain_later_ || (demand.can_grow() && demand.restart < 1);
  return demand;
}

void Rubick::serve_pool(Pass& pass, PoolId pool) {
  const Plan& plan = pass.plan;
  demands_.clear();
  jobs_.clear();
  asked_.clear();
  const auto add = [&](JobId job) {
    jobs_.push_back(job);
    demands_.push_back(demand(pass, job, pool));
  };
  for (const JobId job : running_) {
    if (plan.pool_of(job) == pool) add(job);
  }
  const std::size_t holding = jobs_.size();
  for (const JobId job : waiting_) {
    const auto& pools = pass.view.shape(job).pools;
    if (std::ranges::find(pools, pool) != pools.end()) add(job);
    // Whoever waits behind more than the pool has cannot be reached in this pass.
    if (static_cast<std::int64_t>(jobs_.size() - holding) > plan.cluster().usable_gpus(pool)) break;
  }
  sizes_before_.clear();
  for (const Demand& row : demands_) sizes_before_.push_back(row.size);
  // What is free is what nobody here holds: whoever waits takes from that, or from who holds more
  // than its guarantee.
  static_cast<void>(allocate(demands_, plan.cluster().free_gpus(pool), options_.waiting));
  targets_.clear();
  for (std::size_t i = 0; i < jobs_.size(); ++i) {  // a size off the curve may stay what it is
    if (demands_[i].size != sizes_before_[i])
      targets_.push_back({jobs_[i], i < holding ? plan.gpus_of(jobs_[i]) : 0, demands_[i].held()});
  }
  carry_out(pass, pool);
}

/// Shrinks first, so that the others find room; then those who wait, then growth.
void Rubick::carry_out(Pass& pass, PoolId pool) {
  for (const Target& target : targets_) {
    if (target.gpus < target.before) change_size(pass, pool, target);
  }
  for (const Target& target : targets_) {
    if (target.before == 0 && !start_waiting(pass, pool, target) &&
        options_.waiting == Waiting::Strict)
      break;
  }
  for (const Target& target : targets_) {
    if (target.before > 0 && target.gpus > target.before) change_size(pass, pool, target);
  }
}

bool Rubick::start(Pass& pass, PoolId pool, JobId job, std::int32_t gpus) {
  return pass.attempt([&] {
    return pass.plan.set_terms(job, terms_for(pass.view, job, gpus)) &&
           pass.plan.try_start_sized(pool, job, gpus, Reason::Growth);
  });
}

/// Where the chosen size finds no place, what it asked for or a smaller size may.
bool Rubick::start_waiting(Pass& pass, PoolId pool, const Target& target) {
  const JobId job = target.job;
  const SpeedCurve& speeds = curve(pass.view, job, pool);
  bool started = start(pass, pool, job, target.gpus) || start(pass, pool, job, pass.view.gpus(job));
  for (std::size_t i = speeds.sizes(); i-- > 0 && !started;)
    started = speeds.gpus[i] < target.gpus && start(pass, pool, job, speeds.gpus[i]);
  if (started) note_start(pass, job, pool);
  return started;
}

void Rubick::note_start(const Pass& pass, JobId job, PoolId pool) {
  waiting_.erase(job);
  running_.insert(job);
  const Demand now = demand(pass, job, pool);
  rows_[job].guaranteed = now.curve->gpus[now.guarantee()];
  used_[pass.view.request(job).queue] += rows_[job].guaranteed;
}

void Rubick::change_size(Pass& pass, PoolId pool, const Target& target) {
  const bool changed = try_restart(pass.plan, target.job, Reason::Growth,
                                   [&] { return start(pass, pool, target.job, target.gpus); });
  if (changed) ++rows_[target.job].restarts;
}

void Rubick::decide(const View& view, Plan& plan, Rng& rng) {
  if (!rounds_.is_due(view.now)) return;
  Pass pass{view, plan, rng};
  may_gain_later_ = false;
  std::erase_if(unsized_, [&](JobId job) { return plan.try_start(job); });
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) serve_pool(pass, PoolId{i});
  rounds_.settle();
  if (may_gain_later_) rounds_.hold_until(view.now, view.now + kLook);
}

std::optional<Time> Rubick::next_wakeup(const View& view) {
  if (view.cluster.free_gpus() == 0) return std::nullopt;  // nothing to gain before an event
  return rounds_.wakeup(view.now);
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(options.guarantee, params.number("guarantee", 0.01, 1));
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(options.waiting,
            params.choice<Waiting>("pass", {{"strict", Waiting::Strict}, {"skip", Waiting::Skip}}));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(const auto quotas, params.named_numbers("quotas"));
  for (const auto& [name, numbers] : quotas) {
    if (numbers.size() != 1 || !(numbers[0] > 0 && numbers[0] <= 1))
      return params.wrong("quotas", "must be NAME:SHARE with a share above 0 and at most 1");
    options.quotas.emplace_back(name, numbers[0]);
  }
  return std::make_unique<Rubick>(std::move(options));
}

}  // namespace

}  // namespace berth::rubick

namespace berth {

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
      .make = rubick::make,
      .test_settings = {{"elastic", "all"}}};
  const auto elastic = elastic_params();
  entry.params.insert(entry.params.end(), elastic.begin(), elastic.end());
  return entry;
}

}  // namespace berth
