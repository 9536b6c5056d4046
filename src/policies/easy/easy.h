// EASY backfill: the head of the queue holds one reservation, others may jump if they do not delay
// it.
//
// The head's start is promised for the moment when, by the estimates, enough running jobs have
// ended (the shadow). A later job starts now if it will be over by then, or if it only uses GPUs
// that the head will not need (extra). Everything is recomputed at each pass. Only the head is
// protected.
//
// Needs an estimate of duration. A job that outlives its estimate is expected to end within a
// second, and may be killed (`kill_overrun`). While one runs on, the promise moves, and the policy
// wakes up whenever that may let somebody else go first. Where gangs must be consolidated or cores
// are limited, "fits" and the shadow are tested by placing the head on the future free map instead
// of counting GPUs.
#pragma once

#include <optional>
#include <vector>

#include "core/policy.h"
#include "policies/common/estimate_queue.h"
#include "policies/common/reservation.h"

namespace berth {

class Easy final : public Policy {
 public:
  explicit Easy(bool kill_overrun) : kill_overrun_(kill_overrun) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "easy"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_rate(const View&, JobId job) override { reservation_.ends().has_changed(job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Candidate {
    ShapeId shape;
    EstimateQueue::Found found;
    PoolId pool;
    bool uses_extra = false;
  };
  void drop_departed(const View& view);
  [[nodiscard]] std::optional<ShapeId> head_shape() const;
  [[nodiscard]] bool start(const View& view, Plan& plan, const Candidate& candidate, Reason reason);
  void start_heads(const View& view, Plan& plan);
  [[nodiscard]] std::optional<Candidate> candidate_of(const View& view, ShapeId shape) const;
  void backfill(const View& view, Plan& plan, ShapeId head);

  bool kill_overrun_;
  std::vector<EstimateQueue> queues_;  // by ShapeId
  std::vector<ShapeId> active_;        // shapes with waiting jobs
  std::vector<bool> is_active_;
  Reservation reservation_;
  bool is_reserved_ = false;  // in the last pass: the head waits, and others might go before it
  [[nodiscard]] bool is_blocked(const View& view, ShapeId shape, PoolId pool) const {
    return blocked_[shape.value * view.cluster.pools() + pool.value];
  }
  void block(const View& view, ShapeId shape, PoolId pool) {
    blocked_[shape.value * view.cluster.pools() + pool.value] = true;
  }
  std::vector<bool> blocked_;  // scratch, by shape and pool: no place there in this pass
};

}  // namespace berth
