// From a request to its shape, and whether any state of this cluster could ever hold it. A job that can
// never fit is refused when it arrives, with the numbers; it must not block the jobs behind it.
#pragma once

#include <string>

#include "core/cluster_state.h"
#include "core/placement.h"
#include "core/shape.h"
#include "model/trace.h"

namespace berth {

class ShapeMaker {
 public:
  /// `empty` is the cluster with nothing on it.
  ShapeMaker(const Trace& trace, const ClusterState& empty, Placement& placement)
      : trace_(&trace), empty_(&empty), placement_(&placement) {}
  [[nodiscard]] ShapeId shape_of(const JobRequest& request, ShapeTable& shapes) const;

 private:
  [[nodiscard]] std::vector<PoolId> acceptable_pools(std::string_view types) const;
  [[nodiscard]] std::string why_never(const Shape& shape, std::string_view types) const;

  const Trace* trace_;
  const ClusterState* empty_;
  Placement* placement_;
};

}  // namespace berth
