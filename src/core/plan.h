// A plan is a transaction over the cluster: try, roll back, refuse. It works on the live state with
// an undo log, so a try costs what it touches. An infeasible plan cannot be built: devices are
// taken for real, gangs whole, or try_start() declines. seal() gives the net effect against the
// begin of the plan: a job that was stopped and started again on the same devices costs no action.
// This is the face for policies; the engine begins and seals it (core/engine_plan.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/action.h"
#include "core/capabilities.h"
#include "core/cluster_state.h"
#include "core/job_table.h"
#include "core/placement.h"
#include "core/shape.h"
#include "model/trace.h"
#include "perf/rate_model.h"

namespace berth {

class NodeTuner;

class Plan {
 public:
  struct Mark {
    std::size_t steps;
    std::size_t undos;
  };
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Grants the job its gang: its own devices if it was stopped in this plan and they are still
  /// free, otherwise a new placement in the acceptable pool that the placement prefers. False: not
  /// now.
  [[nodiscard]] bool try_start(JobId job, Reason reason = Reason::Order);
  [[nodiscard]] bool try_start_in(PoolId pool, JobId job, Reason reason = Reason::Order);
  /// The same with so many devices, whatever the job asked for. Where sizes are agreed (see
  /// keep_to_agreed_sizes) it declines a size outside the job's range, as do the next two.
  [[nodiscard]] bool try_start_sized(PoolId pool, JobId job, std::int32_t gpus,
                                     Reason reason = Reason::Growth);
  /// Grants exactly these devices if nobody is on them. Their number may differ from what the job
  /// asked for; stopped and started again like this, it is resized or migrates.
  [[nodiscard]] bool try_start_on(JobId job, PoolId pool, std::span<const Slice> slices,
                                  Reason reason = Reason::Order);
  /// Grants exactly these devices, each shared by at most `limit` jobs and within its memory under
  /// the job's terms.
  [[nodiscard]] bool try_share_on(JobId job, PoolId pool, std::span<const Slice> slices,
                                  std::int32_t limit, Reason reason = Reason::Packing);
  /// Takes the devices of a running (or just started) job back.
  void preempt(JobId job, Reason reason = Reason::Priority);
  /// The same, but its state stays on the host: it is resumed without a restart. Where that cannot
  /// be done it is preempted.
  void suspend(JobId job, Reason reason = Reason::TimeSlice);
  /// Devices on which a waiting job still runs, from before this engine; empty in a simulation. A
  /// policy that starts it anywhere else, or with another number, stops and restarts it.
  [[nodiscard]] std::span<const Slice> found_on(JobId job) const;
  [[nodiscard]] std::int32_t found_gpus(JobId job) const;
  /// Starts it on just these, if there are any, they are free and it agrees to their number.
  [[nodiscard]] bool try_keep(JobId job, Reason reason = Reason::Order);
  /// How the job runs, from now or from its start on. False: its new memory does not fit beside the
  /// others on its devices, or the executor cannot make it run so; nothing changed then.
  [[nodiscard]] bool set_terms(JobId job, const Terms& terms, Reason reason = Reason::Balance);
  /// What the move of this job costs by its mechanism, beside what the executor adds.
  void set_pause(JobId job, Duration pause);
  /// Switches an idle or booting node off, or a node that is off on; it takes jobs once it has
  /// booted. False: not now.
  [[nodiscard]] bool power_off(NodeId node, Reason reason = Reason::Power);
  [[nodiscard]] bool power_on(NodeId node, Reason reason = Reason::Power);
  /// Ends a running or a waiting job for good. on_departure() follows once it is carried out.
  void kill(JobId job, Reason reason = Reason::TimeLimit);

  [[nodiscard]] bool holds(JobId job) const noexcept { return jobs_->allocation[job].holds(); }
  [[nodiscard]] PoolId pool_of(JobId job) const noexcept { return jobs_->allocation[job].pool; }
  [[nodiscard]] ShapeId shape_of(JobId job) const noexcept { return jobs_->shape[job]; }
  [[nodiscard]] const Shape& shape(JobId job) const noexcept {
    return (*shapes_)[jobs_->shape[job]];
  }
  [[nodiscard]] const Terms& terms(JobId job) const noexcept { return jobs_->terms[job]; }
  [[nodiscard]] const JobTable& jobs() const noexcept { return *jobs_; }
  /// Devices the job holds now.
  [[nodiscard]] std::int32_t gpus_of(JobId job) const noexcept;
  /// What it takes of each of its devices.
  [[nodiscard]] DeviceUse use_of(JobId job) const noexcept;
  [[nodiscard]] const ClusterState& cluster() const noexcept { return *state_; }
  [[nodiscard]] std::span<const Slice> slices(JobId job) const noexcept {
    return arena_->slices(jobs_->allocation[job]);
  }
  /// Enough devices in some acceptable pool? Necessary for try_start; sufficient for Relaxed shapes
  /// without side resources.
  [[nodiscard]] bool has_room(const Shape& shape) const noexcept;

  [[nodiscard]] bool waits_for_fewest_nodes() const noexcept {
    return placement_->waits_for_fewest_nodes();
  }
  /// Where a gang would go on another state of the cluster: for reservations on a future free map.
  [[nodiscard]] bool place_on(const ClusterState& state, const Shape& shape, PoolId pool,
                              std::vector<Slice>& slices) const {
    return placement_->place(state, shape, pool, *rng_, slices);
  }

  [[nodiscard]] Mark mark() const noexcept { return Mark{steps_.size(), undos_.size()}; }
  void rollback(Mark mark);
  /// Undoes what a policy keeps beside the plan: called if the plan is rolled back to a mark before
  /// this point, the last one first, when the cluster is again as it is now. Never called otherwise.
  void on_rollback(std::function<void()> undo) {
    undos_.push_back({steps_.size(), std::move(undo)});
  }

 protected:
  ~Plan() = default;  // engine_plan.h

  enum class Ending : std::uint8_t { Preempted, Suspended, Killed };
  struct Step {
    JobId job;          // kNoJob: the power of a node changed
    Allocation before;  // what the job held before this step
    Terms terms_before;
    Reason reason_before;
    Ending ending_before;
    NodeId node{};
    PowerState power_before{};
    std::optional<Duration> pause_before{};  // only the cost of its move changed
  };
  struct Undo {
    std::size_t after;  // so many steps
    std::function<void()> call;
  };
  struct Touched {
    JobId job;
    Allocation original;
    Terms original_terms;
    Duration pause{};
    Reason reason = Reason::None;
    Ending ending = Ending::Preempted;
  };
  struct Powered {
    Slice slice;
    PowerState original;
    Reason reason;
  };
  Plan(ClusterState& state, JobTable& jobs, const ShapeTable& shapes, SliceArena& arena,
       Placement& placement, const RateModel& rates, Rng& rng);

  void check_startable(JobId job) const;
  [[nodiscard]] bool is_agreed(JobId job, std::int32_t gpus) const noexcept;
  [[nodiscard]] bool is_agreed(JobId job, std::span<const Slice> slices) const noexcept;
  Touched& touch(JobId job);
  [[nodiscard]] bool retake(PoolId pool, JobId job, const Shape& shape, Reason reason);
  [[nodiscard]] bool place(PoolId pool, JobId job, const Shape& shape, Reason reason);
  [[nodiscard]] bool put_where_pinned(JobId job, const Shape& shape, Reason reason,
                                      std::optional<PoolId> pool = std::nullopt);
  void set_power(NodeId node, PowerState power, Reason reason);
  void put(JobId job, const Allocation& next, const Terms& terms, Reason reason,
           Ending ending = Ending::Preempted);
  [[nodiscard]] bool put_on(JobId job, PoolId pool, std::span<const Slice> slices, Reason reason);
  void occupy(JobId job, const Allocation& allocation);
  void vacate(JobId job, const Allocation& allocation);
  [[nodiscard]] bool same_devices(const Allocation& a, const Allocation& b) const noexcept;
  [[nodiscard]] bool can_change(const Terms& from, const Terms& to) const noexcept;

  ClusterState* state_;
  JobTable* jobs_;
  const ShapeTable* shapes_;
  SliceArena* arena_;
  Placement* placement_;
  const RateModel* rates_;
  Rng* rng_;
  NodeTuner* tuner_ = nullptr;
  Capabilities can_ = Capabilities::all();
  const Trace* agreed_ = nullptr;  // absent: any size
  std::vector<Step> steps_;
  std::vector<Undo> undos_;
  std::vector<Touched> touched_;
  std::vector<Powered> powered_;
  Column<JobId, std::uint32_t> touched_at_;             // index + 1 into touched_
  std::unordered_map<JobId, std::vector<Slice>> pins_;  // lookup only; empty in a simulation
  std::vector<Allocation> garbage_;  // replaced inside this plan, freed in settle()
  std::vector<Slice> scratch_;
};

}  // namespace berth
