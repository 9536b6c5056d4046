// Ways to pick nodes for a gang, shared by the placements. Each is a function of the free state;
// ties go to the lower node id. With side resources (cores, memory) a node's room may be less than
// its free devices; pickers ask room_on() then and stay exact, at the price of looking at more
// nodes.
#pragma once

#include <optional>
#include <vector>

#include "base/rng.h"
#include "core/cluster_state.h"
#include "core/shape.h"

namespace berth {

/// Lowest `count` free devices of the node, as a slice.
[[nodiscard]] Slice slice_of(const ClusterState& state, NodeId node, std::int32_t count) noexcept;

/// The node with the smallest rest that holds the whole gang.
[[nodiscard]] std::optional<NodeId> best_fit_node(const ClusterState& state, const Shape& shape,
                                                  PoolId pool, std::int32_t gpus) noexcept;
/// The lowest-numbered node that holds the whole gang.
[[nodiscard]] std::optional<NodeId> first_fit_node(const ClusterState& state, const Shape& shape,
                                                   PoolId pool) noexcept;
/// A node drawn evenly from those that hold the whole gang.
[[nodiscard]] std::optional<NodeId> random_fit_node(const ClusterState& state, const Shape& shape,
                                                    PoolId pool, Rng& rng);

/// Fewest nodes: the roomiest first, the last one best fit. `rack` limits the search.
[[nodiscard]] bool fewest_nodes(const ClusterState& state, const Shape& shape, PoolId pool,
                                std::optional<RackId> rack, std::vector<Slice>& slices);
/// The rack with the least room that still holds the gang.
[[nodiscard]] std::optional<RackId> best_fit_rack(const ClusterState& state, const Shape& shape,
                                                  PoolId pool) noexcept;
/// Nodes with the fewest free devices first: fills holes.
[[nodiscard]] bool fullest_nodes(const ClusterState& state, const Shape& shape, PoolId pool,
                                 std::vector<Slice>& slices);
/// Fewest nodes that hold the gang when nothing else is on the pool's nodes: of those that work,
/// the roomiest for this shape come first. More than there are if they do not hold it.
[[nodiscard]] std::int32_t fewest_possible(const ClusterState& state, const Shape& shape,
                                           PoolId pool) noexcept;

}  // namespace berth
