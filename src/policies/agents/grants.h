// How devices come to a job: the search for a place inside a pod (or, for the root, anywhere), the
// start there, and the lease that goes with it. Where servers are believed to make jobs slower that
// share them, places are looked for away from disturbing neighbours (placements/quiet_match.h).
//
// A search that is kept to a pod asks servers from the tightest on whether they belong to it, so
// callers look at the numbers of the pod first.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/policy.h"
#include "policies/agents/arbiters.h"
#include "policies/agents/job_agents.h"

namespace berth::agents {

/// Where a gang may look for devices.
struct Bounds {
  PodId pod;  // the root: anywhere
  Level max_level = Level::CrossRack;
  std::span<const NodeId> cell = {};  // not empty: on these servers alone; ascending
};

/// Devices a job had, to go back to.
struct Holding {
  JobId job;
  PoolId pool;
  PodId pod;
  std::vector<Slice> slices;
};

class Grants {
 public:
  Grants(const Options& options, Arbiters& arbiters, JobAgents& agents)
      : options_(options), arbiters_(arbiters), agents_(agents) {}

  /// A place for the gang now; it lies in a buffer until the next question. Only where there is a
  /// topology, and for whole devices.
  [[nodiscard]] std::optional<Match> find(const ClusterState& state, const Shape& shape,
                                          PoolId pool, const Bounds& bounds);
  [[nodiscard]] bool has_places(const ClusterState& state, const Shape& shape) const noexcept {
    return state.topology() != nullptr && !shape.is_fraction();
  }
  /// The same for a job in a pod, no farther apart than its agent accepts now.
  [[nodiscard]] std::optional<Match> find_accepted(const View& view, JobId job, PodId pod,
                                                   PoolId pool);
  /// What find() answered, as slices; valid until the next question.
  [[nodiscard]] std::span<const Slice> slices_of(const Match& match);

  /// Starts a waiting job in the pod, as close together as its agent accepts.
  [[nodiscard]] bool start(Pass& pass, JobId job, PodId pod);
  [[nodiscard]] bool start_in(Pass& pass, JobId job, PodId pod, PoolId pool, Duration lease);
  /// Starts it where find() found room for it.
  [[nodiscard]] bool start_at(Pass& pass, JobId job, PoolId pool, const Match& match,
                              Duration lease, Reason reason);
  /// Gives a holder whose devices were for sale its old ones, else others of its pod.
  [[nodiscard]] bool restart(Pass& pass, const Holding& holding, Duration lease);
  [[nodiscard]] Holding holding_of(const Plan& plan, JobId job) const;

 private:
  [[nodiscard]] bool start_by_placement(Pass& pass, JobId job, PoolId pool, Duration lease,
                                        Reason reason);

  const Options& options_;
  Arbiters& arbiters_;
  JobAgents& agents_;
  std::vector<DeviceSet> parts_;  // scratch
  std::vector<Slice> slices_;     // scratch
};

}  // namespace berth::agents
