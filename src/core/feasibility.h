// From a request to its shape, and whether any state of this cluster could ever hold it. A job that
// can never fit is refused when it arrives, with the numbers; it must not block the jobs behind it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "core/cluster_state.h"
#include "core/placement.h"
#include "core/shape.h"
#include "model/trace.h"
#include "perf/profile.h"

namespace berth {

/// What of a request limits where a job can go; left out of shapes if something else shares it out.
struct SideLimits {
  bool cores = true;
  bool memory = true;
  /// Jobs without a device are served beside the policy (core/cores_lane.h), whatever the placement
  /// gives out; what they ask for always limits them.
  bool cores_beside = false;
};

class ShapeMaker {
 public:
  /// `empty` is the cluster with nothing on it.
  /// What a job takes of the bus is part of its shape if `buses` says so of its model.
  ShapeMaker(const Trace& trace, const ClusterState& empty, Placement& placement,
             SideLimits limits = {}, const ProfileSet* buses = nullptr);
  [[nodiscard]] ShapeId shape_of(const JobRequest& request, ShapeTable& shapes);
  /// Why no state of the cluster could hold this request of this shape, in the words of the request
  /// itself; empty if some state can. Requests for different types that nobody has share a shape:
  /// what one of them calls its type must not be told to another.
  [[nodiscard]] std::string why_never(const JobRequest& request, ShapeId shape,
                                      const ShapeTable& shapes) const;

 private:
  /// Requests that agree in these have one shape; a million jobs have a few dozen.
  struct Key {
    std::int32_t gpus, gpu_milli, cpus_milli, memory_mib;
    NameId types;
    Locality locality;
    std::int32_t bus_milli;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  [[nodiscard]] std::vector<PoolId> acceptable_pools(std::string_view types) const;
  [[nodiscard]] std::string why_never(const Shape& shape) const;
  [[nodiscard]] bool has_room_without_device(const Shape& shape) const;

  const Trace* trace_;
  const ClusterState* empty_;
  Placement* placement_;
  const ProfileSet* buses_;
  bool cores_beside_;
  bool limits_cpus_ = false;  // some node describes its cores
  bool limits_memory_ = false;
  std::unordered_map<Key, ShapeId, KeyHash> known_;  // lookup only
  /// What of a shape comes from the model.
  struct OfModel {
    Locality locality = Locality::Relaxed;
    std::int32_t bus_milli = 0;
  };
  [[nodiscard]] OfModel traits_of(const JobRequest& request) const;
  std::unordered_map<std::uint64_t, OfModel> of_model_;  // by model and GPUs; lookup only
};

}  // namespace berth
