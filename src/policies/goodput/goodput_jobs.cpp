#include "policies/goodput/goodput_jobs.h"

#include <algorithm>
#include <cmath>

#include "policies/common/restart_factor.h"
#include "policies/kit/training_reports.h"

namespace berth::goodput {

namespace {

constexpr double kNewTable = 1.1;  // the noise scale has to change so much
constexpr Duration kFitInterval = std::chrono::seconds{30};

bool differs(double a, double b) { return a > b * kNewTable || b > a * kNewTable; }

}  // namespace

void Jobs::begin(const View& view) {
  facts_.resize(view.jobs.size());
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    pool_gpus_.push_back(view.cluster.cluster().total_gpus(PoolId{i}));
}

void Jobs::add(const View& view, JobId job) {
  active_.insert(std::ranges::upper_bound(active_, job), job);
  // No pool may be able to hold what the rule would allow.
  std::int64_t largest = 1;
  for (const PoolId pool : view.shape(job).pools) largest = std::max(largest, pool_gpus_[pool]);
  ElasticRange range = elastic_range(view, job, options_.elastic);
  range.most = static_cast<std::int32_t>(std::min<std::int64_t>(range.most, largest));
  range.least = std::min(range.least, range.most);
  facts_[job].range = range;
}

void Jobs::remove(JobId job) {
  const auto at = std::ranges::lower_bound(active_, job);
  if (at != active_.end() && *at == job) active_.erase(at);
  learnt_.erase(job);
}

std::int32_t Jobs::most(JobId job) const {
  const Facts& facts = facts_[job];
  if (options_.growth <= 0) return facts.range.most;
  const double grown = std::max(1.0, options_.growth * facts.most_held);
  const double most = std::max<double>(facts.range.least, grown);
  return static_cast<std::int32_t>(std::min<double>(most, facts.range.most));
}

double Jobs::restart_factor(const View& view, JobId job) const {
  if (view.jobs.first_start[job] == kNever) return 1;
  return berth::restart_factor(to_seconds(view.now - view.jobs.submitted[job]), restarts(job),
                               to_seconds(options_.restart));
}

bool Jobs::is_pinned(const View& view, JobId job) const {
  if (!view.jobs.is_running(job)) return false;
  if (view.jobs.work_from[job] > view.now) return true;
  const Duration left = view.estimated_left(job);
  const double rate = view.jobs.rate[job].value();
  return left > Duration::zero() && rate > 0 &&
         to_seconds(left) / rate <= to_seconds(options_.restart);
}

Subject Jobs::subject(const View& view, JobId job, PoolId pool) const {
  const Kind& kind = view.kind(job);
  return {.profile = kind.profile,
          .pool = pool,
          .wanted = kind.wanted,
          .batch = kind.batch,
          .adaptation = options_.adaptation,
          .two_on_one = options_.two_on_one};
}

/// Smoothed over the rounds: one report is noisy itself, and a new table costs a new batch.
bool Jobs::update_noise(const View& view, JobId job) {
  Facts& facts = facts_[job];
  if (facts.is_silent) return false;
  const auto report = sensible_report(view, job);
  if (!report) return false;
  if (!(report->noise_scale > 0)) {
    facts.is_silent = true;
    return false;
  }
  reports_noise_ = true;
  facts.phi = facts.phi > 0
                  ? options_.smoothing * facts.phi + (1 - options_.smoothing) * report->noise_scale
                  : report->noise_scale;
  if (facts.used_phi > 0 && !differs(facts.phi, facts.used_phi)) return false;
  facts.used_phi = facts.phi;
  return true;
}

/// How long an iteration takes, in iterations of the job's own configuration: from the rate at
/// which it progresses. Only the fit so far can tell a gang's sub-batches from its last step.
bool Jobs::observe_step(const View& view, JobId job) {
  const Terms& terms = view.jobs.terms[job];
  const double rate = view.jobs.rate[job].value();
  if (view.jobs.work_from[job] >= view.now || rate <= 0 || terms.batch <= 0) return false;
  Learnt& learnt = learnt_[job];
  const Gang gang{.nodes = view.jobs.allocation[job].slices > 1 ? 2 : 1,
                  .gpus = view.jobs.granted[job]};
  const double per_step = std::ceil(1.0 * terms.batch / terms.sub_steps);
  const auto is_same = [&](const StepTimes& step) {
    return step.gang == gang && step.per_step == per_step;
  };
  if (std::ranges::any_of(learnt.seen, is_same)) return false;
  const double first =
      own_total_batch(view.believed(), subject(view, job, view.jobs.allocation[job].pool));
  const double total = 1.0 * gang.gpus * terms.batch;
  const auto report = sensible_report(view, job);
  const double phi = report && report->noise_scale > 0 ? report->noise_scale : first;
  const double seconds = total / first * statistical_efficiency(phi, first, total) / rate;
  StepTimes step{.gang = gang, .per_step = per_step};
  if (gang.gpus == 1) {
    step.accumulate_seconds = step.optimizer_seconds = seconds / terms.sub_steps;
  } else {
    step.optimizer_seconds = seconds - (terms.sub_steps - 1) * learnt.params.grad_seconds(per_step);
  }
  if (step.optimizer_seconds <= 0) return false;
  learnt.seen.push_back(step);
  learnt.is_stale = true;
  return true;
}

bool Jobs::refresh(const View& view) {
  bool changed = false;
  for (const JobId job : active_) {
    if (!view.jobs.is_running(job)) continue;
    changed |= update_noise(view, job);
    if (options_.model == Model::Fitted) changed |= observe_step(view, job);
  }
  return changed;
}

const Table& Jobs::learnt(const View& view, JobId job, PoolId pool) {
  Learnt& learnt = learnt_[job];
  const double used_phi = facts_[job].used_phi;
  const bool may_fit = learnt.last_fit == Time{} || view.now - learnt.last_fit >= kFitInterval;
  if (learnt.is_stale && may_fit) {
    learnt.params = fit_throughput(learnt.seen, Rng{job.value + 1ULL});
    learnt.is_stale = false;
    learnt.last_fit = view.now;
    learnt.table.reset();
  }
  if (learnt.table && learnt.table_phi == used_phi) return *learnt.table;
  ThroughputParams params = learnt.params;
  if (learnt.seen.empty()) {  // nobody knows anything: synchronising is free
    params.alpha_local = params.alpha_node = params.beta_local = params.beta_node = 0;
  }
  const Subject who = subject(view, job, pool);
  learnt.table.emplace(batch_range(view.believed(), who),
                       used_phi > 0 ? used_phi : own_total_batch(view.believed(), who),
                       [params](const Gang& gang, std::int32_t per_step, std::int32_t extra_steps) {
                         return params.iteration_seconds(gang, per_step, extra_steps);
                       });
  learnt.table_phi = used_phi;
  return *learnt.table;
}

const Table& Jobs::believed(const View& view, JobId job, PoolId pool) {
  Facts& facts = facts_[job];
  if (facts.table != nullptr && facts.table_pool == pool && facts.table_phi == facts.used_phi)
    return *facts.table;
  const Subject who = subject(view, job, pool);
  const std::int32_t step = noise_step(view.believed(), who, facts.used_phi);
  ByNoise& by_noise = tables_.of(view.jobs.kind[job]).of(pool);
  auto at = by_noise.find(step);
  if (at == by_noise.end())
    at = by_noise.emplace(step, believed_table(view.believed(), who, step)).first;
  facts.table = &at->second;
  facts.table_pool = pool;
  facts.table_phi = facts.used_phi;
  return *facts.table;
}

const Table& Jobs::table(const View& view, JobId job, PoolId pool) {
  return options_.model == Model::Fitted ? learnt(view, job, pool) : believed(view, job, pool);
}

void Jobs::set_batch(Pass& pass, JobId job) {
  const auto& [view, plan, rng] = pass;
  if (view.shape(job).is_fraction()) return;
  const bool spread = plan.slices(job).size() > 1;
  const BatchChoice& choice = table(view, job, plan.pool_of(job)).best(plan.gpus_of(job), spread);
  if (!choice.is_valid()) return;
  Terms terms = plan.terms(job);
  terms.batch = choice.per_gpu();
  terms.sub_steps = choice.extra_steps + 1;
  // Where its memory is too small it goes on as it is.
  if (terms != plan.terms(job)) static_cast<void>(plan.set_terms(job, terms, Reason::Growth));
}

void Jobs::settle(Pass& pass, JobId job, Place place) {
  Facts& facts = facts_[job];
  facts.most_held = std::max(facts.most_held, pass.plan.gpus_of(job));
  // A first start is no restart: the run charges what it costs.
  if (place == Place::New && pass.view.jobs.first_start[job] != kNever) {
    ++facts.restarts;
    pass.plan.set_pause(job, options_.restart);
  }
  set_batch(pass, job);
}

}  // namespace berth::goodput
