#include "policies/goodput/goodput_policy.h"

#include <algorithm>

namespace berth::goodput {

void GoodputPolicy::on_arrival(const View& view, JobId job) {
  jobs_.add(view, job);
  on_requeue(view, job);
}

void GoodputPolicy::on_requeue(const View& view, JobId job) {
  waiting_.push(view.jobs.kind[job], job);
  clock_.stir(view.now);
}

void GoodputPolicy::on_departure(const View& view, JobId job) {
  jobs_.remove(job);
  waiting_.forget(view.jobs.kind[job], job);
  clock_.stir(view.now);
}

std::optional<Time> GoodputPolicy::next_wakeup(const View& view) {
  // With nothing running nothing changes by waiting.
  if (!is_anybody_running_ || jobs_.active().empty()) return std::nullopt;
  return std::max(clock_.next(), view.now + Duration{1});
}

void GoodputPolicy::decide(const View& view, Plan& plan, Rng& rng) {
  constexpr std::int64_t kLongestPause = 32;  // rounds
  constexpr std::int64_t kWhileLearning = 4;
  Pass pass{view, plan, rng};
  if (clock_.is_due(view.now)) {
    bool changed = jobs_.refresh(view);
    changed |= hold_round(pass);
    list_waiting(pass);
    clock_.rest(view.now, changed, jobs_.reports_noise() ? kWhileLearning : kLongestPause);
  }
  start_waiting(pass);
  is_anybody_running_ =
      std::ranges::any_of(jobs_.active(), [&](JobId job) { return plan.holds(job); });
}

void GoodputPolicy::set_batches(Pass& pass) {
  for (const JobId job : jobs_.active()) {
    if (pass.plan.holds(job)) jobs_.set_batch(pass, job);
  }
}

/// A round starts and stops jobs past the list, so it is made anew.
void GoodputPolicy::list_waiting(Pass& pass) {
  drained_.clear();
  waiting_.drain(drained_);
  for (const JobId job : jobs_.active()) {
    if (!pass.plan.holds(job)) waiting_.push(pass.view.jobs.kind[job], job);
  }
}

/// Jobs without GPUs, at their smallest size on whatever is free: they need not wait for a round.
void GoodputPolicy::start_waiting(Pass& pass) {
  const auto anybody = [](KindId) { return true; };
  waiting_.pass(anybody, [&](JobId job) {
    if (pass.plan.cluster().free_gpus() == 0) return Tried::Enough;
    const bool is_kept = pass.plan.try_keep(job);
    if (!is_kept && !try_start(pass, job)) return Tried::NoPlace;
    on_start(pass.plan, job);
    jobs_.settle(pass, job, is_kept ? Place::Kept : Place::New);
    clock_.stir(pass.view.now + Duration{1});  // the next round may give it more
    return Tried::Started;
  });
}

bool GoodputPolicy::try_start(Pass& pass, JobId job) {
  const auto try_in = [&](PoolId pool) {
    return pass.plan.try_start_sized(pool, job, jobs_.least(job), Reason::Order);
  };
  const PoolId first = first_pool(pass.view, job);
  return try_in(first) || std::ranges::any_of(pass.view.shape(job).pools, [&](PoolId pool) {
           return pool != first && try_in(pool);
         });
}

std::vector<ParamSpec> params_with(std::vector<ParamSpec> own) {
  std::vector<ParamSpec> params{
      {"interval", "60", "seconds between two rounds, aligned to time zero"},
      {"restart", "30", "seconds a job pays when it is moved, resized or resumed"},
      {"batch", "adapt", "adapt: choose the batch of jobs whose limits are known; fixed: never"},
      {"growth", "2", "a job gets so many times the most GPUs it ever held; 0 = no limit"},
      {"min_two", "on", "one GPU with more than the first batch takes two sub-batches"},
      {"smoothing", "0.9", "weight of the past in the noise scale, per round"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  for (ParamSpec& spec : own) params.push_back(std::move(spec));
  return params;
}

Result<Options> read_options(const Params& params) {
  Options options;
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.interval, params.positive_duration("interval"));
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(options.adaptation, params.choice<Adaptation>("batch", {{"adapt", Adaptation::Batch},
                                                                    {"fixed", Adaptation::Fixed}}));
  BERTH_TRY(options.growth, params.number("growth", 0, 1000));
  BERTH_TRY(options.two_on_one, params.flag("min_two"));
  BERTH_TRY(options.smoothing, params.number("smoothing", 0, 0.999));
  return options;
}

}  // namespace berth::goodput
