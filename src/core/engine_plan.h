// The engine's face of a plan: it opens one, hands it to the policy as a Plan, and takes the net
// effect as actions.
#pragma once

#include <span>
#include <vector>

#include "core/action.h"
#include "core/plan.h"

namespace berth {

class EnginePlan final : public Plan {
 public:
  EnginePlan(ClusterState& state, JobTable& jobs, const ShapeTable& shapes, SliceArena& arena,
             Placement& placement, const RateModel& rates, Rng& rng)
      : Plan(state, jobs, shapes, arena, placement, rates, rng) {}

  /// What its executor can do; without it everything.
  void set_capabilities(Capabilities can) noexcept { can_ = can; }
  /// Has a say in where jobs start that the placement found a place for.
  void set_tuner(NodeTuner* tuner) noexcept { tuner_ = tuner; }
  /// Jobs are started with no other number of devices than their requests in `trace` agree to: a
  /// mistake of a policy must not reach a program.
  void keep_to_agreed_sizes(const Trace& trace) noexcept { agreed_ = &trace; }
  /// A waiting job that still runs on these devices, from before: where the placement has the say
  /// it gets them if they are free, until it holds devices again.
  void pin(JobId job, std::span<const Slice> slices) {
    pins_[job].assign(slices.begin(), slices.end());
  }
  void unpin(JobId job) {
    if (!pins_.empty()) pins_.erase(job);
  }

  /// Grants cores and memory of this node and no device. False: not now.
  [[nodiscard]] bool try_start_without_device(JobId job, NodeId node);

  void begin();
  [[nodiscard]] std::span<const Action> seal();
  /// Jobs in the order in which this plan first changed what they hold.
  [[nodiscard]] std::vector<JobId> touched_in_order() const;
  void settle();  // after the actions were carried out: forget what the plan replaced
  /// Nodes that some job of the plan left or came to; in no order, with repetitions.
  void nodes_changed(std::vector<NodeId>& nodes) const;

 private:
  void add_power_actions();
  void add_term_actions(const Touched& touched);
  [[nodiscard]] Action device_action(const Touched& touched) const;
  [[nodiscard]] bool joins_others(JobId job) const noexcept;

  std::vector<Action> actions_;
};

}  // namespace berth
