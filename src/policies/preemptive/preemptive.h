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
// whoever was evicted is looked at again. Kept jobs stay where they are and are never migrated; new
// grants are placed in order.
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
#include "policies/common/shape_queues.h"

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
  [[nodiscard]] Need needs() const noexcept override {
    if (by_deadline()) return Need::Deadline;
    return by_work() ? Need::RunTime : Need::Nothing;
  }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Grant {
    OrderKey key;
    ShapeId shape;
    PoolId pool;
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
  [[nodiscard]] Time changes_from(const View& view, JobId job) const;
  void join(const View& view, PoolId pool, JobId job);  // becomes a holder
  void leave(JobId job);
  void queue(const View& view, JobId job);
  void absorb_outcome(const View& view);
  [[nodiscard]] bool has_room_elsewhere(const View& view, const Grant& stop) const;
  [[nodiscard]] bool looks_again(Time now);
  [[nodiscard]] std::optional<Grant> next_grant(const View& view, const Plan& plan);
  [[nodiscard]] std::optional<PoolId> pool_for(const View& view, const Plan& plan, ShapeId shape);
  void grant_all(const View& view, const Plan& plan);
  [[nodiscard]] bool carry_out(Plan& plan);
  void undo(const View& view, const Plan& plan);

  std::string name_;
  PreemptiveOptions options_;
  ShapeQueues waiting_;
  KineticSet holding_;
  std::vector<bool> is_holding_;       // by JobId
  std::vector<Overhead> in_overhead_;  // heap, earliest first: hold devices without progress yet
  std::vector<JobId> fresh_;           // started by the last pass: their overhead is known now
  std::vector<Grant> stopped_;         // preempted by the last pass: what it cost them is known now
  Time last_pass_{};
  bool has_changed_ = false;    // who is there, since the last pass
  bool may_evict_ = true;       // in this pass
  std::vector<Grant> grants_;   // of this pass, in key order
  std::vector<Grant> evicted_;  // of this pass: may be granted again
  std::vector<bool> blocked_;   // shapes that found no place in this pass
};

}  // namespace berth
