// A plan is a transaction over the cluster: try, roll back, refuse. It works on the live state with
// an undo log, so a try costs what it touches. An infeasible plan cannot be built: devices are
// taken for real, gangs whole, or try_start() declines. seal() gives the net effect against the
// begin of the plan: a job that was stopped and started again on the same devices costs no action.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "core/action.h"
#include "core/cluster_state.h"
#include "core/job_table.h"
#include "core/placement.h"
#include "core/shape.h"

namespace berth {

class Plan {
 public:
  struct Mark {
    std::size_t steps;
  };
  Plan(ClusterState& state, JobTable& jobs, const ShapeTable& shapes, SliceArena& arena,
       Placement& placement, Rng& rng);

  /// Grants the job its gang: its own devices if it was stopped in this plan and they are still
  /// free, otherwise a new placement in the first acceptable pool that has one. False: not now.
  [[nodiscard]] bool try_start(JobId job, Reason reason = Reason::Order);
  [[nodiscard]] bool try_start_in(PoolId pool, JobId job, Reason reason = Reason::Order);
  /// Takes the devices of a running (or just started) job back.
  void preempt(JobId job, Reason reason = Reason::Priority);
  /// Ends a running job for good.
  void kill(JobId job, Reason reason = Reason::TimeLimit);

  [[nodiscard]] bool holds(JobId job) const noexcept { return jobs_->allocation[job].holds(); }
  [[nodiscard]] PoolId pool_of(JobId job) const noexcept { return jobs_->allocation[job].pool; }
  [[nodiscard]] ShapeId shape_of(JobId job) const noexcept { return jobs_->shape[job]; }
  [[nodiscard]] std::span<const Slice> slices(JobId job) const noexcept {
    return arena_->slices(jobs_->allocation[job]);
  }
  /// Enough devices in some acceptable pool? Necessary for try_start; sufficient for Relaxed shapes
  /// without side resources.
  [[nodiscard]] bool has_room(const Shape& shape) const noexcept;

  /// Where a gang would go on another state of the cluster: for reservations on a future free map.
  [[nodiscard]] bool place_on(const ClusterState& state, const Shape& shape, PoolId pool,
                              std::vector<Slice>& slices) const {
    return placement_->place(state, shape, pool, *rng_, slices);
  }

  [[nodiscard]] Mark mark() const noexcept { return Mark{steps_.size()}; }
  void rollback(Mark mark);

  // For the engine.
  void begin();
  [[nodiscard]] std::span<const Action> seal();
  void settle();  // after the actions were carried out: forget what the plan replaced

 private:
  struct Step {
    JobId job;
    Allocation before;  // what the job held before this step
    Reason reason_before;
  };
  struct Touched {
    JobId job;
    Allocation original;
    Reason reason = Reason::None;
    bool killed = false;
  };
  Touched& touch(JobId job);
  void put(JobId job, const Allocation& next, Reason reason);
  void occupy(const Allocation& allocation, const Shape& shape);
  void vacate(const Allocation& allocation, const Shape& shape);
  [[nodiscard]] bool same_devices(const Allocation& a, const Allocation& b) const noexcept;

  ClusterState* state_;
  JobTable* jobs_;
  const ShapeTable* shapes_;
  SliceArena* arena_;
  Placement* placement_;
  Rng* rng_;
  std::vector<Step> steps_;
  std::vector<Touched> touched_;
  Column<JobId, std::uint32_t> touched_at_;  // index + 1 into touched_
  std::vector<Allocation> garbage_;          // replaced inside this plan, freed in settle()
  std::vector<Action> actions_;
  std::vector<Slice> scratch_;
};

}  // namespace berth
