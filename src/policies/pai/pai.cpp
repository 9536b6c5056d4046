#include "policies/pai/pai.h"

#include <algorithm>

#include <fmt/format.h>

#include "placements/node_picker.h"
#include "policies/pai/balance.h"

namespace berth {

void Pai::begin(const View& view) {
  places_.resize(view.jobs.size());
  const Cluster& cluster = view.cluster.cluster();
  const auto named = std::ranges::find(cluster.pools, options_.high_type, &DeviceType::name);
  const auto fastest = std::ranges::max_element(cluster.pools, {}, &DeviceType::speed);
  const auto high = named != cluster.pools.end() ? named : fastest;
  high_ = PoolId{static_cast<std::uint32_t>(high - cluster.pools.begin())};
  has_high_type_ = options_.reserve && cluster.pools.size() > 1;
}

/// Its memory fits no device of the other types.
bool Pai::needs_large_memory(const View& view, JobId job) const {
  const std::int32_t wanted =
      view.believed().memory_mib(view.jobs.profile[job], view.jobs.batch[job], {});
  const auto& pools = view.cluster.cluster().pools;
  if (wanted > pools[high_.value].memory_mib) return false;
  for (std::uint32_t i = 0; i < pools.size(); ++i) {
    const bool holds = pools[i].memory_mib == 0 || wanted <= pools[i].memory_mib;
    if (PoolId{i} != high_ && holds) return false;
  }
  return true;
}

bool Pai::is_high(const View& view, JobId job) const {
  const ProfileId profile = view.jobs.profile[job];
  if (!has_high_type_ || profile == ProfileSet::fallback()) return false;  // unknown: not high
  if (needs_large_memory(view, job)) return true;
  const RateModel& believed = view.believed();
  if (!believed.effects().device) return false;  // types do not differ
  if (believed.profile(profile).speeds.empty())  // never measured on several types
    return believed.profile(profile).gpu_utilisation > options_.high_use;
  double weakest = believed.speed(profile, high_);
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i)
    weakest = std::min(weakest, believed.speed(profile, PoolId{i}));
  return believed.speed(profile, high_) >= options_.high_speedup * weakest;
}

void Pai::enqueue(const View& view, JobId job) {
  const Duration predicted = view.estimate(job);
  const bool high = is_high(view, job);
  const double patience =
      std::max(to_seconds(options_.least_wait), options_.aging * to_seconds(predicted));
  const Int128 size = options_.gpu_time ? std::max(1, view.gpus(job)) : 1;
  queues_.push(job, {.lane = high ? kHigh : kLow,
                     .shape = view.jobs.shape[job],
                     .key = Int128{predicted.count()} * size,
                     .patient_until = options_.aging > 0 && patience < kMaxInputSeconds
                                          ? view.now + seconds_to_duration(patience)
                                          : kNever});
  if (high) high_waiting_.push_back(job);
}

void Pai::on_arrival(const View& view, JobId job) { enqueue(view, job); }

void Pai::note_stop(const View& view, JobId job) {
  if (is_high(view, job)) held_by_high_ -= places_[job.value].gpus;
  places_[job.value].gpus = 0;
  std::erase(borrowers_, job);
}

void Pai::on_departure(const View& view, JobId job) {
  queues_.forget(job);
  std::erase(high_waiting_, job);
  note_stop(view, job);
}

void Pai::on_requeue(const View& view, JobId job) {
  note_stop(view, job);
  enqueue(view, job);
}

/// By the run's placement, or on the server where cores and GPUs stay balanced if the whole job
/// fits on one.
bool Pai::start_in(const View& view, Plan& plan, PoolId pool, JobId job) {
  const Shape& shape = view.shape(job);
  const bool balances = options_.balance && shape.gpus > 0 && !shape.is_fraction() &&
                        plan.cluster().mode() == ClusterState::Mode::Devices &&
                        !(has_high_type_ && pool == high_);
  if (balances) {
    if (const auto node = most_balanced(plan.cluster(), shape, pool)) {
      const Slice slice = slice_of(plan.cluster(), *node, shape.gpus);
      return plan.try_start_on(job, pool, {&slice, 1}, Reason::Balance);
    }
  }
  return plan.try_start_in(pool, job);
}

bool Pai::start(const View& view, Plan& plan, JobId job) {
  if (!has_high_type_ && !options_.balance) return plan.try_start(job);
  const bool high = is_high(view, job);
  const Shape& shape = view.shape(job);
  const auto try_in = [&](PoolId pool) {
    if (!start_in(view, plan, pool, job)) return false;
    if (!has_high_type_ || pool != high_) return true;
    places_[job.value].gpus = shape.gpus;
    if (high) {
      held_by_high_ += shape.gpus;
    } else {
      borrowers_.push_back(job);
    }
    return true;
  };
  if (!has_high_type_) return std::ranges::any_of(shape.pools, try_in);
  const bool wants_high = std::ranges::find(shape.pools, high_) != shape.pools.end();
  const auto elsewhere = [&] {
    return std::ranges::any_of(shape.pools,
                               [&](PoolId pool) { return pool != high_ && try_in(pool); });
  };
  if (high && wants_high && try_in(high_)) return true;
  if (elsewhere()) return true;
  const bool only_there =
      wants_high && shape.pools.size() == 1;  // it insists: not a borrower's choice
  return !high && wants_high &&
         (only_there || may_borrow(plan.cluster().free_gpus(high_), reserve_.wanted(),
                                   held_by_high_, shape.gpus)) &&
         try_in(high_);
}

/// Youngest borrowers first, until the job that has waited longest of those who need the devices
/// has them; nobody if that is not enough.
void Pai::take_back(const View& view, Plan& plan) {
  std::erase_if(high_waiting_, [&](JobId job) { return plan.holds(job); });
  if (high_waiting_.empty()) return;
  const JobId job = high_waiting_.front();
  if (view.now - view.jobs.submitted[job] < options_.high_wait) return;
  const Plan::Mark mark = plan.mark();
  std::vector<JobId> stopped;
  for (auto borrower = borrowers_.rbegin(); borrower != borrowers_.rend(); ++borrower) {
    plan.preempt(*borrower, Reason::Guarantee);
    stopped.push_back(*borrower);
    if (!start(view, plan, job)) continue;
    queues_.forget(job);
    std::erase(high_waiting_, job);
    for (const JobId victim : stopped) {
      note_stop(view, victim);
      enqueue(view, victim);
    }
    return;
  }
  plan.rollback(mark);
}

void Pai::decide(const View& view, Plan& plan, Rng&) {
  reserve_.note(view.now, held_by_high_);
  queues_.promote(view.now);
  queues_.pass(view, plan, false, [&](JobId job) { return start(view, plan, job); });
  if (options_.preempt_borrowers && !borrowers_.empty()) take_back(view, plan);
  std::erase_if(high_waiting_, [&](JobId job) { return plan.holds(job); });
}

/// A job runs out of patience, or borrowers have to give way to one that needs their devices.
std::optional<Time> Pai::next_wakeup(const View& view) {
  Time next = queues_.next_promotion().value_or(kNever);
  if (options_.preempt_borrowers && !high_waiting_.empty()) {
    const Time due = view.jobs.submitted[high_waiting_.front()] + options_.high_wait;
    if (due > view.now) next = std::min(next, due);
  }
  if (next == kNever) return std::nullopt;
  return next;
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  PaiOptions options;
  BERTH_TRY(options.gpu_time, params.flag("gpu_time"));
  BERTH_TRY(options.aging, params.number("aging", 0, 1e6));
  BERTH_TRY(options.least_wait, params.duration("least_wait"));
  BERTH_TRY(options.reserve, params.flag("reserve"));
  BERTH_TRY(options.high_speedup, params.number("high_speedup", 1, 1000));
  BERTH_TRY(options.high_use, params.number("high_use", 0, 1));
  options.high_type = params.text("high_type");
  BERTH_TRY(options.preempt_borrowers, params.flag("preempt_borrowers"));
  BERTH_TRY(options.high_wait, params.duration("high_wait"));
  BERTH_TRY(options.balance, params.flag("balance"));
  return std::make_unique<Pai>(std::move(options));
}

}  // namespace

PolicyEntry pai_entry() {
  PolicyEntry entry{
      .name = "pai",
      .summary =
          "shortest predicted run time first; high-end GPUs kept for jobs that use them (PAI)",
      .params =
          {{"gpu_time", "off", "on: order by predicted run time times GPUs"},
           {"aging", "5", "a job that has waited so many predictions goes first; 0: never"},
           {"least_wait", "1h", "and at least so long"},
           {"reserve", "on", "keep devices of the high-end type for jobs that need them"},
           {"high_type", "", "the high-end type; empty: the fastest"},
           {"high_speedup", "1.5",
            "a job needs it if it is so many times faster there than on the weakest"},
           {"high_use", "0.4",
            "where that was not measured: if it uses more than this share of a device's compute"},
           {"preempt_borrowers", "off",
            "others on high-end devices give way to a job that needs them"},
           {"high_wait", "5m", "once it has waited so long"},
           {"balance", "off",
            "on: outside the high-end type a job goes to the server whose cores and GPUs it loads "
            "least"}},
      .make = make};
  entry.estimator = "pai";
  return entry;
}

}  // namespace berth
