// A place for a gang beside nodes that are reserved for something else (a profiler, a debug pool).
#pragma once

#include <cstdint>
#include <vector>

#include "core/cluster_state.h"
#include "core/shape.h"

namespace berth {

/// The node with the smallest rest that holds the gang, else the roomiest nodes; none of the
/// reserved ones (by NodeId). Costs the nodes with free devices that are looked at.
[[nodiscard]] bool place_outside(const ClusterState& state, const Shape& shape, PoolId pool,
                                 const std::vector<bool>& reserved, std::vector<Slice>& slices);
/// Do the other nodes of an acceptable pool have as many devices at all?
[[nodiscard]] bool is_outside_large_enough(const Cluster& cluster, const Shape& shape,
                                           const std::vector<bool>& reserved);

}  // namespace berth
