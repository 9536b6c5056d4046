// Preemptive list scheduling: all active jobs in order of a key, the first that fit run, the others
// wait or are preempted.
//
//   srtf    least estimated work left               srsf    the same times GPUs
//   las     least time of holding devices           las-2d  the same times GPUs
//   edf     earliest deadline, jobs without one behind the others in order of arrival
//
// The reference is a walk over all active jobs with an empty cluster (baselines: "preemptive
// pass"). Here the same result is reached from the previous one: a waiting job is granted when the
// GPUs held by jobs before it leave room, the jobs behind it give way from the last one on, and
// whoever was evicted is looked at again.
//
// Counting decides who runs where GPUs are only counted. Elsewhere it is what a job needs at least:
// grants are placed in order, and one that finds no devices (too few on a node, too few cores)
// takes those of jobs behind it, least work lost first, as few as make room (make_way.h). These
// look for another place at their own turn, or wait. All others stay where they are. A job that
// finds no place even then waits, and the pass is made again without its shape. So nobody waits
// behind jobs of lower rank that could make room.
//
// A job whose user said that it is not to be preempted keeps its devices whatever its key is.
//
// Assumes: preemption is by checkpoint. LAS is looked at again every `quantum`, aligned to time
// zero, at arrivals and at departures. A pass for any other reason (live, an attempt that has begun
// or has saved) only fills what is free: whoever just began has more service than whoever waits,
// and would give way at once, for ever.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/common/kinetic_set.h"
#include "policies/common/make_way.h"
#include "policies/kit/waiting_jobs.h"

namespace berth {

enum class ServiceKey : std::uint8_t { WorkLeft, WorkLeftGpus, Attained, AttainedGpus, Deadline };

struct PreemptiveOptions {
  ServiceKey key = ServiceKey::WorkLeft;
  Duration quantum{};       // LAS only: how often the order is looked at again
  Duration preempt_gain{};  // a job gives way only if its key exceeds the other's by more than this
                            // (x GPUs)
};

class Preemptive final : public Policy {
 public:
  Preemptive(std::string name, const PreemptiveOptions& options)
      : name_(std::move(name)), options_(options) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    const Need needs = by_deadline() ? Need::Deadline : by_work() ? Need::RunTime : Need::Nothing;
    return {.needs = needs, .preempts = true};
  }
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
    return options_.key == ServiceKey::WorkLeft || options_.key == ServiceKey::WorkLeftGpus;
  }
  [[nodiscard]] bool by_deadline() const noexcept { return options_.key == ServiceKey::Deadline; }
  [[nodiscard]] bool by_gpus() const noexcept {
    return options_.key == ServiceKey::WorkLeftGpus || options_.key == ServiceKey::AttainedGpus;
  }
  [[nodiscard]] Int128 key_of(const View& view, JobId job) const;
  [[nodiscard]] Int128 gain_for(std::int32_t gpus) const;
  [[nodiscard]] Time changes_from(const View& view, JobId job) const;
  void join(const View& view, PoolId pool, JobId job);  // becomes a holder
  void leave(JobId job);
  void queue(const View& view, JobId job);
  void absorb_outcome(const View& view);
  void note_overhead(const View& view, JobId job);
  [[nodiscard]] bool has_room_elsewhere(const View& view, const Grant& stop) const;
  [[nodiscard]] bool looks_again(Time now);
  [[nodiscard]] bool is_holding(JobId job) const noexcept {
    return job.value < rows_.size() && rows_[job.value].holds;
  }
  /// It is where it is meant to be.
  [[nodiscard]] bool is_settled(const Plan& plan, JobId job) const noexcept {
    return is_holding(job) && plan.holds(job) && plan.pool_of(job) == rows_[job.value].pool;
  }
  [[nodiscard]] std::int64_t held_gpus(PoolId pool) const {
    return holding_.gpus(pool) + firm_.gpus(pool);
  }
  [[nodiscard]] OrderKey& limit(ShapeId shape, PoolId pool) {
    return limits_[shape.value * pools_ + pool.value];
  }
  [[nodiscard]] bool is_blocked(ShapeId shape, PoolId pool, const OrderKey& key) const {
    return !(key < limits_[shape.value * pools_ + pool.value]);
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
  PreemptiveOptions options_;
  WaitingByShape waiting_;
  KineticSet holding_;
  KineticSet firm_;  // holders that are not to be preempted; they come before everybody
  struct Row {
    bool holds = false;  // member of one of the two
    bool firm = false;   // of the second
    PoolId pool;         // while it does
  };
  std::vector<Row> rows_;              // by JobId
  std::vector<Overhead> in_overhead_;  // heap, earliest first: hold devices without progress yet
  std::vector<JobId> fresh_;           // started by the last pass: their overhead is known now
  std::vector<JobId> moved_;           // by the last pass: the same, and they go another way
  std::vector<Grant> stopped_;         // preempted by the last pass: what it cost them is known now
  Time last_pass_{};
  bool has_changed_ = false;  // who is there, since the last pass
  bool may_evict_ = true;     // in this pass
  bool has_left_ = false;     // somebody made way in this round and found no other place
  bool has_blocked_ = false;  // some limit is set
  std::size_t pools_ = 0;
  std::vector<OrderKey>
      limits_;  // by shape and pool: from whom on nobody finds a place in this pass
  // of one round
  std::vector<Grant> grants_;   // in key order
  std::vector<Grant> evicted_;  // may be granted again
  std::vector<Grant> aside_;    // of these, whose shape is blocked where they are: not in waiting_
  std::vector<Grant> pending_;  // grants to be placed and jobs that made way, in key order
  // of all rounds of a pass
  std::vector<JobId> placed_;
  std::vector<Grant> left_;
  WayMaker way_;  // scratch
};

}  // namespace berth
