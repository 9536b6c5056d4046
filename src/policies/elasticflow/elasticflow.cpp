#include "policies/elasticflow/elasticflow.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include <fmt/format.h>

namespace berth::elasticflow {

namespace {

/// Powers of two in the range; what it asked for if there is none.
std::vector<std::int32_t> sizes_in(const ElasticRange& range, std::int32_t wanted) {
  std::vector<std::int32_t> sizes;
  for (std::int32_t size = 1; size <= range.most; size *= 2) {
    if (size >= range.least) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(std::clamp(wanted, range.least, range.most));
  return sizes;
}

}  // namespace

void ElasticFlow::begin(const View& view) {
  rows_.resize(view.jobs.size());
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    servers_.push_back(BuddyServers{view.cluster.cluster(), PoolId{i}});
}

/// The whole batch stays what it is; where its part does not fit on a device, it is accumulated.
Terms ElasticFlow::terms_for(const View& view, JobId job, PoolId pool, std::int32_t gpus) const {
  Terms terms;
  const std::int32_t wanted = view.gpus(job);
  if (gpus == wanted) return terms;
  const std::int32_t known = view.jobs.batch[job];
  const std::int32_t own =
      known > 0 ? known : std::max(1, view.believed().profile(view.jobs.profile[job]).batch);
  terms.batch = std::max(1, static_cast<std::int32_t>(std::int64_t{own} * wanted / gpus));
  const RateModel& believed = view.believed();
  const std::int64_t room = believed.device_memory_mib(pool);
  const auto fits = [&] {
    return believed.memory_mib(view.jobs.profile[job], known, terms) <= room;
  };
  while (room > 0 && terms.batch > own * terms.sub_steps && !fits()) ++terms.sub_steps;
  return terms;
}

/// Only sizes that are faster than all smaller ones, and that the pool has.
const SpeedCurve& ElasticFlow::curve(const View& view, JobId job, PoolId pool) {
  const Kind kind{view.jobs.profile[job],   pool,
                  view.jobs.reference[job], view.gpus(job),
                  view.jobs.batch[job],     elastic_range(view, job, options_.elastic)};
  const auto [entry, is_new] = curves_.try_emplace(kind);
  if (!is_new) return entry->second;
  SpeedCurve& curve = entry->second;
  for (const std::int32_t gpus : sizes_in(kind.range, kind.wanted)) {
    if (gpus > view.cluster.cluster().total_gpus(pool)) break;
    Standing standing;
    standing.profile = kind.profile;
    standing.pool = pool;
    standing.reference = kind.reference;
    standing.gpus = gpus;
    standing.wanted = kind.wanted;
    standing.batch = kind.batch;
    standing.level = view.believed().best_level(pool, gpus);
    standing.terms = terms_for(view, job, pool, gpus);
    const double speed = view.believed().alone(standing);
    if (!curve.speed.empty() && speed <= curve.speed.back()) break;
    curve.gpus.push_back(gpus);
    curve.speed.push_back(speed);
  }
  return curve;
}

/// Believed work when a slot begins, if it goes on as it is until then.
double ElasticFlow::work_left(const View& view, JobId job, Time at) const {
  double left = to_seconds(view.estimated_left(job));
  if (view.jobs.is_running(job)) {
    const Time from = std::max(view.now, view.jobs.work_from[job]);
    if (at > from) left -= view.jobs.rate[job].value() * to_seconds(at - from);
  }
  return options_.slack * std::max(left, 1e-6);
}

Demand ElasticFlow::demand(const View& view, JobId job, PoolId pool) {
  const Time start = rounds_.coming(view.now);
  return {.curve = &curve(view, job, pool),
          .work = work_left(view, job, start),
          .slots = (*view.deadline(job) - start) / options_.slot};
}

bool ElasticFlow::add_share(const View& view, JobId job, PoolId pool) {
  auto share = free_->share(demand(view, job, pool), to_seconds(options_.slot));
  if (!share || !free_->try_take(*share)) return false;
  shares_.push_back({job, *std::move(share)});
  return true;
}

/// What is left of the share it had, if that is still enough and there.
bool ElasticFlow::add_old_share(const View& view, JobId job, PoolId pool) {
  const Row& row = rows_[job.value];
  Share rest = row.share.after((rounds_.coming(view.now) - row.from) / options_.slot);
  const Demand need = demand(view, job, pool);
  if (rest.stretches.empty() || rest.work(*need.curve, to_seconds(options_.slot)) < need.work ||
      !free_->try_take(rest))
    return false;
  shares_.push_back({job, std::move(rest)});
  return true;
}

/// By deadline, the newcomer among the others. False: somebody is not in time.
bool ElasticFlow::share_anew(const View& view, PoolId pool, std::optional<JobId> newcomer) {
  shares_.clear();
  free_.emplace(view.cluster.usable_gpus(pool));
  std::vector<std::pair<Time, JobId>> order;
  for (const auto& [deadline, job] : promised_) {
    if (rows_[job.value].pool == pool) order.push_back({deadline, job});
  }
  if (newcomer) order.push_back({*view.deadline(*newcomer), *newcomer});
  std::ranges::sort(order);
  return std::ranges::all_of(
      order, [&](const auto& entry) { return add_share(view, entry.second, pool); });
}

/// Everybody as before, the newcomer on what is left. A job for which that is not enough is late.
bool ElasticFlow::share_as_before(const View& view, PoolId pool, std::optional<JobId> newcomer) {
  shares_.clear();
  late_.clear();
  free_.emplace(view.cluster.usable_gpus(pool));
  std::vector<JobId> rest;
  for (const auto& [deadline, job] : promised_) {
    if (rows_[job.value].pool == pool && !add_old_share(view, job, pool)) rest.push_back(job);
  }
  for (const JobId job : rest) {
    if (!add_share(view, job, pool)) late_.push_back(job);
  }
  return !newcomer || (late_.empty() && add_share(view, *newcomer, pool));
}

/// Shares of all promised jobs of the pool. Made anew they may fail although the old ones would do:
/// a job that is ahead of its plan may ask for fewer GPUs for longer, in the way of another.
bool ElasticFlow::make_shares(const View& view, PoolId pool, std::optional<JobId> newcomer) {
  late_.clear();
  return share_anew(view, pool, newcomer) || share_as_before(view, pool, newcomer);
}

/// Nobody came or went: what is left of the shares, unless one turns out too small.
bool ElasticFlow::keep_shares(const View& view, PoolId pool) {
  shares_.clear();
  late_.clear();
  std::int64_t left = view.cluster.usable_gpus(pool);
  for (const auto& [deadline, job] : promised_) {
    const Row& row = rows_[job.value];
    if (row.pool != pool) continue;
    Share rest = row.share.after((rounds_.coming(view.now) - row.from) / options_.slot);
    const Demand need = demand(view, job, pool);
    if (rest.stretches.empty() || rest.work(*need.curve, to_seconds(options_.slot)) < need.work)
      return false;
    left -= rest.stretches.front().gpus;
    shares_.push_back({job, std::move(rest)});
  }
  free_.emplace(left);
  return true;
}

void ElasticFlow::commit_shares(const View& view) {
  for (const Promised& one : shares_) {
    rows_[one.job.value].share = one.share;
    rows_[one.job.value].from = rounds_.coming(view.now);
  }
}

std::optional<Refusal> ElasticFlow::admit(const View& view, JobId job) {
  if (!view.deadline(job)) return std::nullopt;
  for (const PoolId pool : view.shape(job).pools) {
    if (curve(view, job, pool).sizes() == 0 || !make_shares(view, pool, job)) continue;
    rows_[job.value].is_promised = true;
    rows_[job.value].pool = pool;
    commit_shares(view);
    return std::nullopt;
  }
  if (view.deadline_is_soft(job) || !options_.refuses) return std::nullopt;
  return refusal(view, job);
}

Refusal ElasticFlow::refusal(const View& view, JobId job) {
  const PoolId pool = view.shape(job).pools.front();
  const SpeedCurve& speeds = curve(view, job, pool);
  const double seconds = to_seconds(*view.deadline(job) - view.now);
  return {Reason::Deadline,
          fmt::format("needs {} on up to {} GPUs; no share of {} GPUs ends in the {} until its "
                      "deadline beside {} promised jobs",
                      human_duration(work_left(view, job, view.now) /
                                     (speeds.sizes() == 0 ? 1 : speeds.speed.back())),
                      speeds.sizes() == 0 ? 0 : speeds.gpus.back(), view.cluster.usable_gpus(pool),
                      human_duration(std::max(seconds, 0.0)), promised_.size())};
}

void ElasticFlow::on_arrival(const View& view, JobId job) {
  note_change(view, rows_[job.value].is_promised);
  if (rows_[job.value].is_promised) {
    promised_.insert({*view.deadline(job), job});
    idle_.insert(job);
  } else {
    waiting_.insert(job);
  }
}

void ElasticFlow::on_departure(const View& view, JobId job) {
  note_change(view, rows_[job.value].is_promised);
  if (const auto deadline = view.deadline(job)) promised_.erase({*deadline, job});
  idle_.erase(job);
  running_.erase(job);
  waiting_.erase(job);
}

void ElasticFlow::on_requeue(const View& view, JobId job) {
  note_change(view, true);
  set_holding(job, false);
}

void ElasticFlow::set_holding(JobId job, bool holds) {
  if (rows_[job.value].is_promised) {
    holds ? static_cast<void>(idle_.erase(job)) : static_cast<void>(idle_.insert(job));
    return;
  }
  (holds ? waiting_ : running_).erase(job);
  (holds ? running_ : waiting_).insert(job);
}

/// It goes on without a promise.
void ElasticFlow::be_late(const View& view, const Plan& plan, JobId job) {
  promised_.erase({*view.deadline(job), job});
  idle_.erase(job);
  rows_[job.value].is_promised = false;
  set_holding(job, plan.holds(job));
}

void ElasticFlow::decide(const View& view, Plan& plan, Rng&) {
  if (promised_.empty() && waiting_.empty() && running_.empty()) return rounds_.settle();
  if (rounds_.is_due(view.now)) begin_slot(view, plan);
  fill(view, plan);
}

std::optional<Time> ElasticFlow::next_wakeup(const View& view) { return rounds_.wakeup(view.now); }

}  // namespace berth::elasticflow

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  elasticflow::ElasticFlowOptions options;
  BERTH_TRY(options.slot, params.duration("slot"));
  if (options.slot <= Duration::zero()) return params.wrong("slot", "must be more than zero");
  BERTH_TRY(options.slack, params.number("slack", 1, 100));
  BERTH_TRY(const auto unmet, params.choice("unmet", {"refuse", "best-effort"}));
  options.refuses = unmet == 0;
  BERTH_TRY(options.elastic, elastic_rule(params));
  return std::make_unique<elasticflow::ElasticFlow>(options);
}

std::vector<ParamSpec> params_of_elasticflow() {
  std::vector<ParamSpec> params{
      {"slot", "60", "seconds between two changes of size, aligned to time zero"},
      {"slack", "1.05", "factor on the believed work left, against wrong estimates and restarts"},
      {"unmet", "refuse", "strict deadline that cannot be promised: refuse or best-effort"}};
  for (ParamSpec& one : elastic_params()) params.push_back(std::move(one));
  return params;
}

}  // namespace

PolicyEntry elasticflow_entry() {
  return {.name = "elasticflow",
          .summary =
              "elastic jobs with deadlines on the fewest GPUs that are in time; the rest to "
              "whoever gains",
          .params = params_of_elasticflow(),
          .make = make};
}

}  // namespace berth
