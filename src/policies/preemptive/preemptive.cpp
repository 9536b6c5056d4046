#include "policies/preemptive/preemptive.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/rounds.h"
#include "policies/common/make_way.h"
#include "policies/common/place_limits.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/preemptive/kinetic_set.h"

namespace berth {
namespace preemptive {

namespace {
constexpr int kFraction = 32;  // keys carry the fraction bits of a Rate
}  // namespace

enum class Key : std::uint8_t { WorkLeft, WorkLeftGpus, Attained, AttainedGpus, Deadline };

struct Options {
  Key key = Key::WorkLeft;
  Duration quantum{};  // LAS only: how often the order is looked at again
  /// A job gives way only if its key exceeds the other's by more than this (x GPUs).
  Duration preempt_gain{};
};

class Preemptive final : public Policy {
 public:
  Preemptive(std::string name, const Options& options)
      : name_(std::move(name)), options_(options), quanta_(options.quantum) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    const Need needs = by_deadline() ? Need::Deadline : by_work() ? Need::RunTime : Need::Nothing;
    return {.needs = needs, .preempts = true};
  }
  void begin(const View& view) override { limits_.begin(view.cluster.pools()); }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View&, NodeId) override { has_changed_ = true; }
  void on_rate(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Grant {
    OrderKey key;
    ShapeId shape;
    PoolId pool;
    bool made_way = false;  // held devices in this pass and looks for others
  };
  struct Overhead {
    Time until;
    JobId job;
    friend auto operator<=>(const Overhead&, const Overhead&) = default;
  };
  [[nodiscard]] bool by_work() const noexcept {
    return options_.key == Key::WorkLeft || options_.key == Key::WorkLeftGpus;
  }
  [[nodiscard]] bool by_deadline() const noexcept { return options_.key == Key::Deadline; }
  [[nodiscard]] bool by_gpus() const noexcept {
    return options_.key == Key::WorkLeftGpus || options_.key == Key::AttainedGpus;
  }
  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;
  [[nodiscard]] Int128 gain_for(std::int32_t gpus) const;
  [[nodiscard]] Time changes_from(const View& view, JobId job) const;
  void join(const View& view, PoolId pool, JobId job);  // becomes a holder
  void leave(JobId job);
  void queue(const View& view, JobId job);
  void absorb_outcome(const View& view);
  void note_overhead(const View& view, JobId job);
  [[nodiscard]] bool looks_again(Time now);
  [[nodiscard]] bool is_holding(JobId job) const noexcept {
    return job.value < rows_.size() && rows_[job].holds;
  }
  /// It is where it is meant to be.
  [[nodiscard]] bool is_settled(const Plan& plan, JobId job) const noexcept {
    return is_holding(job) && plan.holds(job) && plan.pool_of(job) == rows_[job].pool;
  }
  [[nodiscard]] std::int64_t held_gpus(PoolId pool) const {
    return holding_.gpus(pool) + firm_.gpus(pool);
  }
  [[nodiscard]] std::optional<Grant> next_grant(const View& view, const Plan& plan);
  [[nodiscard]] std::optional<PoolId> pool_for(const View& view, const Plan& plan,
                                               const OrderKey& key, ShapeId shape) const;
  [[nodiscard]] bool has_room(const View& view, PoolId pool, const OrderKey& key,
                              std::int32_t gpus) const;
  void evict_last(const View& view, PoolId pool);
  void grant_all(const View& view, const Plan& plan);
  [[nodiscard]] bool place(const View& view, Plan& plan, const Grant& grant);
  [[nodiscard]] bool carry_out(const View& view, Plan& plan);
  void undo(const View& view, const Plan& plan);
  void note_round();

  std::string name_;
  Options options_;
  Grid quanta_;
  WaitingByShape waiting_;
  KineticSet holding_;
  KineticSet firm_;  // holders that are not to be preempted; they come before everybody
  struct Row {
    bool holds = false;  // member of one of the two
    bool firm = false;   // of the second
    PoolId pool;         // while it does
  };
  Column<JobId, Row> rows_;
  std::vector<Overhead> in_overhead_;  // heap, earliest first: hold devices without progress yet
  std::vector<JobId> fresh_;           // started by the last pass: their overhead is known now
  std::vector<JobId> moved_;           // by the last pass: the same, and they go another way
  std::vector<Grant> stopped_;         // preempted by the last pass: what it cost them is known now
  Time last_pass_{};
  bool has_changed_ = false;      // who is there, since the last pass
  bool may_evict_ = true;         // in this pass
  bool has_left_ = false;         // somebody made way in this round and found no other place
  PlaceLimits<OrderKey> limits_;  // in this pass
  // of one round
  std::vector<Grant> grants_;   // in key order
  std::vector<Grant> evicted_;  // may be granted again
  std::vector<Grant> aside_;    // of these, whose shape is blocked where they are:
                                // not in waiting_
  std::vector<Grant> pending_;  // grants to be placed and jobs that made way, in key order
  // of all rounds of a pass
  std::vector<JobId> placed_;
  std::vector<Grant> left_;
  WayMaker way_;  // scratch
};

Int128 Preemptive::key_of(const View& view, JobId job) const {
  if (by_deadline()) return view.deadline(job).value_or(kNever).time_since_epoch().count();
  const Duration service = by_work() ? view.estimated_left(job) : view.jobs.attained(job, view.now);
  const Int128 key = Int128{service.count()} * (std::int64_t{1} << kFraction);
  return by_gpus() ? key * view.gpus(job) : key;
}

Time Preemptive::changes_from(const View& view, JobId job) const {
  return by_work() ? view.jobs.work_from[job] : view.jobs.held_from[job];
}

Int128 Preemptive::gain_for(std::int32_t gpus) const {
  const Int128 gain = Int128{options_.preempt_gain.count()} * (std::int64_t{1} << kFraction);
  return by_gpus() ? gain * gpus : gain;
}

void Preemptive::join(const View& view, PoolId pool, JobId job) {
  if (job.value >= rows_.size()) rows_.resize(view.jobs.size());
  const bool firm = !view.request(job).preemptible;
  rows_[job] = {.holds = true, .firm = firm, .pool = pool};
  if (firm) {
    firm_.insert(view.now, pool, job, 0, 0, view.gpus(job));
    return;
  }
  // A job that was granted devices another is still saving on, or pays an overhead, does not change
  // its key until that is over.
  const bool changes = !view.jobs.is_running(job) || view.now >= changes_from(view, job);
  const Rate rate = by_work() && view.jobs.is_running(job) ? view.jobs.rate[job] : Rate::one();
  std::int64_t slope = changes ? static_cast<std::int64_t>(rate.raw()) : 0;
  if (by_work()) slope = -slope;
  if (by_gpus()) slope *= view.gpus(job);
  if (by_deadline()) slope = 0;
  holding_.insert(view.now, pool, job, key_of(view, job), slope, view.gpus(job));
}

void Preemptive::leave(JobId job) {
  Row& row = rows_[job];
  (row.firm ? firm_ : holding_).erase(job);
  row.holds = false;
}

void Preemptive::queue(const View& view, JobId job) {
  waiting_.push(view.jobs.shape[job], {key_of(view, job), job});
}

void Preemptive::on_arrival(const View& view, JobId job) {
  has_changed_ = true;
  queue(view, job);
}

void Preemptive::on_departure(const View& view, JobId job) {
  has_changed_ = true;
  if (is_holding(job)) {
    leave(job);
  } else {
    waiting_.forget(view.jobs.shape[job], job);
  }
}

void Preemptive::on_requeue(const View& view, JobId job) {
  leave(job);
  on_arrival(view, job);
}

/// Its key moves otherwise from now on: it is faster or slower, or holds its devices at last.
void Preemptive::on_rate(const View& view, JobId job) {
  if (by_deadline() || !is_holding(job)) return;
  has_changed_ = has_changed_ || by_work();
  leave(job);
  join(view, view.jobs.allocation[job].pool, job);
}

/// What the executor made of the last pass, and overheads that have ended since. A start may take
/// effect later than decided, which changes how the key moves; a stop may have added service
/// (saving a checkpoint), which changes the key of a job that waits.
void Preemptive::absorb_outcome(const View& view) {
  for (const Grant& stop : stopped_) {
    const JobId job = stop.key.job;
    if (!view.jobs.is_waiting(job) || is_holding(job) || key_of(view, job) == stop.key.value)
      continue;
    waiting_.forget(stop.shape, job);
    queue(view, job);
  }
  stopped_.clear();
  const auto rejoin = [&](JobId job) {
    if (!is_holding(job)) return;
    leave(job);
    join(view, view.jobs.allocation[job].pool, job);
  };
  for (const JobId job : fresh_) {
    if (!is_holding(job)) continue;
    note_overhead(view, job);
    if (changes_from(view, job) > last_pass_ || view.jobs.rate[job] != Rate::one()) rejoin(job);
  }
  fresh_.clear();
  for (const JobId job : moved_) {
    if (!is_holding(job)) continue;
    note_overhead(view, job);
    rejoin(job);
  }
  moved_.clear();
  while (!in_overhead_.empty() && in_overhead_.front().until <= view.now) {
    rejoin(in_overhead_.front().job);
    std::ranges::pop_heap(in_overhead_, std::ranges::greater{});
    in_overhead_.pop_back();
  }
}

void Preemptive::note_overhead(const View& view, JobId job) {
  const Time from = changes_from(view, job);
  if (from <= view.now) return;
  in_overhead_.push_back({from, job});
  std::ranges::push_heap(in_overhead_, std::ranges::greater{});
}

// --- who runs, by count

/// Beside the holders that come before it, the job has room.
bool Preemptive::has_room(const View& view, PoolId pool, const OrderKey& key,
                          std::int32_t gpus) const {
  const std::int64_t usable = view.cluster.usable_gpus(pool);
  if (held_gpus(pool) + gpus <= usable) return true;
  if (!may_evict_) return false;
  const auto last = holding_.last(view.now, pool);
  if (!last || *last < key) return false;  // nobody behind it could give way
  return holding_.gpus_before(view.now, pool, key) + firm_.gpus(pool) + gpus <= usable;
}

/// A pool for the job. One that still holds its devices (evicted a moment ago in this pass) keeps
/// them if it can; where GPUs are only counted it goes to no other pool in this pass.
std::optional<PoolId> Preemptive::pool_for(const View& view, const Plan& plan, const OrderKey& key,
                                           ShapeId shape) const {
  const Shape& wanted = view.shapes[shape];
  const bool still_holds = plan.holds(key.job);
  if (still_holds) {
    const PoolId own = plan.pool_of(key.job);
    if (has_room(view, own, key, wanted.gpus)) return own;
    if (view.cluster.mode() == ClusterState::Mode::Count) return std::nullopt;
  }
  const OrderKey raised{key.value + gain_for(wanted.gpus), key.job};
  for (const PoolId pool : wanted.pools) {
    if (limits_.excludes(shape, pool, key) || (still_holds && plan.pool_of(key.job) == pool))
      continue;
    if (has_room(view, pool, raised, wanted.gpus)) return pool;
  }
  return std::nullopt;
}

std::optional<Preemptive::Grant> Preemptive::next_grant(const View& view, const Plan& plan) {
  std::optional<Grant> best;
  const auto offer = [&](const OrderKey& key, ShapeId shape) {
    if (best && best->key < key) return;
    if (const auto pool = pool_for(view, plan, key, shape)) best = Grant{key, shape, *pool};
  };
  for (const ShapeId shape : waiting_.active()) offer(waiting_.top(shape), shape);
  for (const Grant& each : aside_) offer(each.key, each.shape);
  return best;
}

void Preemptive::evict_last(const View& view, PoolId pool) {
  const OrderKey victim = *holding_.last(view.now, pool);
  const Grant entry{victim, view.jobs.shape[victim.job], pool};
  leave(victim.job);
  evicted_.push_back(entry);
  // Its place is not what its shape is blocked for: in the queue it would stand behind jobs that
  // have none.
  if (limits_.excludes(entry.shape, pool, victim)) {
    aside_.push_back(entry);
  } else {
    waiting_.push(entry.shape, victim);
  }
}

/// Grants in order of keys until no waiting job has room any more. Every eviction is of a job
/// behind the one just granted, so keys only rise and the loop ends.
void Preemptive::grant_all(const View& view, const Plan& plan) {
  grants_.clear();
  evicted_.clear();
  aside_.clear();
  while (const auto grant = next_grant(view, plan)) {
    const auto is_it = [&](const Grant& each) { return each.key.job == grant->key.job; };
    if (std::erase_if(aside_, is_it) == 0) waiting_.pop(grant->shape);
    grants_.push_back(*grant);
    join(view, grant->pool, grant->key.job);
    while (held_gpus(grant->pool) > view.cluster.usable_gpus(grant->pool))
      evict_last(view, grant->pool);
  }
}

// --- where

/// On free devices, else on those of jobs behind it.
bool Preemptive::place(const View& view, Plan& plan, const Grant& grant) {
  const JobId job = grant.key.job;
  if (plan.try_start_in(grant.pool, job)) return true;
  if (!may_evict_ || view.cluster.mode() == ClusterState::Mode::Count) return false;
  const bool was_waiting = !grant.made_way && !view.jobs.is_running(job);
  const OrderKey key{grant.key.value + (was_waiting ? gain_for(view.gpus(job)) : 0), job};
  way_.clear();
  holding_.for_each_after(view.now, grant.pool, key, [&](JobId other) {
    if (plan.holds(other) && plan.pool_of(other) == grant.pool) way_.add(view, other);
  });
  if (!way_.try_start(plan, grant.pool, job, Reason::Priority)) return false;
  for (const JobId other : way_.displaced()) {
    const Grant entry{holding_.key(view.now, other), view.jobs.shape[other], grant.pool, true};
    pending_.insert(std::ranges::upper_bound(pending_, entry.key, {}, &Grant::key), entry);
  }
  return true;
}

/// Places the grants in order; who makes way for one of them comes behind it and has its own turn.
bool Preemptive::carry_out(const View& view, Plan& plan) {
  for (const Grant& victim : evicted_) {
    if (plan.holds(victim.key.job) && !is_settled(plan, victim.key.job))
      plan.preempt(victim.key.job);
  }
  pending_.clear();
  has_left_ = false;
  for (const Grant& grant : grants_) {
    if (is_holding(grant.key.job) && !plan.holds(grant.key.job)) pending_.push_back(grant);
  }
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Grant grant = pending_[i];
    if (place(view, plan, grant)) continue;
    if (!grant.made_way) {
      limits_.set(grant.shape, grant.pool, grant.key);
      return false;
    }
    leave(grant.key.job);
    waiting_.push(grant.shape, grant.key);
    evicted_.push_back(grant);
    has_left_ = true;
  }
  return true;
}

/// The holders are again those that hold devices; everybody else waits.
void Preemptive::undo(const View& view, const Plan& plan) {
  for (const Grant& grant : grants_) {
    const JobId job = grant.key.job;
    if (!is_holding(job) || is_settled(plan, job)) continue;
    leave(job);
    if (!plan.holds(job)) waiting_.push(grant.shape, grant.key);
  }
  for (const Grant& victim : evicted_) {
    const JobId job = victim.key.job;
    if (is_holding(job) || !plan.holds(job)) continue;
    waiting_.forget(victim.shape, job);
    join(view, plan.pool_of(job), job);
  }
}

void Preemptive::note_round() {
  for (const Grant& each : aside_) waiting_.push(each.shape, each.key);
  for (const Grant& each : pending_) placed_.push_back(each.key.job);
  left_.insert(left_.end(), evicted_.begin(), evicted_.end());
}

bool Preemptive::looks_again(Time now) {
  const bool changed = std::exchange(has_changed_, false);
  return changed || !quanta_.has_period() || quanta_.at(now) != quanta_.at(last_pass_);
}

void Preemptive::decide(const View& view, Plan& plan, Rng&) {
  absorb_outcome(view);
  may_evict_ = looks_again(view.now);
  last_pass_ = view.now;
  if (waiting_.empty()) return;
  limits_.clear();
  placed_.clear();
  left_.clear();
  // A round ends with everybody placed, or is made again without the first who finds no place and
  // whoever of its shape comes behind it: they have fewer to make way, and more in the way. Who
  // made way and left has freed what jobs behind it may use, and they alone: the next round begins
  // further down the order, so that there is a last one.
  bool has_placed = false;
  for (bool again = true; again;) {
    const bool is_placed = attempt(plan, [&] {
      grant_all(view, plan);
      return carry_out(view, plan);
    });
    if (!is_placed) {
      undo(view, plan);
      continue;
    }
    note_round();
    again = has_left_;
    // Without those left out, jobs before them may have been placed otherwise: they try again on
    // what has become of it. Who was placed comes behind everybody placed before.
    has_placed = has_placed || !pending_.empty();
    if (!again && limits_.any() && has_placed) {
      limits_.clear();
      has_placed = false;
      again = true;
    }
  }
  for (const JobId job : placed_) {
    if (is_holding(job)) (view.jobs.is_running(job) ? moved_ : fresh_).push_back(job);
  }
  for (const Grant& victim : left_) {
    if (!is_holding(victim.key.job)) stopped_.push_back(victim);
  }
}

std::optional<Time> Preemptive::next_wakeup(const View& view) {
  const auto goes_on = [&](const Grant& stop) {
    const JobId job = stop.key.job;
    return view.jobs.is_waiting(job) && has_room_elsewhere(view, job, stop.pool);
  };
  if (std::ranges::any_of(stopped_, goes_on)) return view.now + Duration{1};
  // With nothing running nothing changes by waiting.
  if (!quanta_.has_period() || waiting_.empty() || holding_.size() == 0) return std::nullopt;
  return quanta_.after(view.now);
}

namespace {

template <Key key>
Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  Options options{.key = key};
  if constexpr (key == Key::WorkLeft || key == Key::WorkLeftGpus) {
    BERTH_TRY(options.preempt_gain, params.duration("preempt_gain"));
  } else if constexpr (key != Key::Deadline) {
    BERTH_TRY(options.quantum, params.positive_duration("quantum"));
  }
  return std::make_unique<Preemptive>(entry.name, options);
}

}  // namespace
}  // namespace preemptive

std::vector<PolicyEntry> preemptive_entries() {
  using preemptive::Key;
  using preemptive::make;
  const ParamSpec gain{"preempt_gain", "0",
                       "seconds of work (x GPUs for srsf) a preemption must win at least"};
  const ParamSpec quantum{"quantum", "60",
                          "seconds between two looks at the order, aligned to time zero"};
  return {
      {.name = "srtf",
       .summary = "preemptive, least estimated work left first",
       .params = {gain},
       .make = make<Key::WorkLeft>},
      {.name = "srsf",
       .summary = "preemptive, least estimated work left times GPUs first",
       .params = {gain},
       .make = make<Key::WorkLeftGpus>},
      {.name = "las",
       .summary = "preemptive, least time of holding GPUs first",
       .params = {quantum},
       .make = make<Key::Attained>,
       .test_settings = {{"quantum", "5"}}},
      {.name = "las-2d",
       .summary = "preemptive, least GPU-seconds held first",
       .params = {quantum},
       .make = make<Key::AttainedGpus>,
       .test_settings = {{"quantum", "5"}}},
      {.name = "edf",
       .summary = "preemptive, earliest deadline first, jobs without one "
                  "behind in order of arrival",
       .params = {},
       .make = make<Key::Deadline>},
  };
}

}  // namespace berth
