#include "core/topology_index.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/check.h"

namespace berth {

std::size_t TopologyIndex::InnerTier::key(std::int32_t free, std::int32_t server_free,
                                          std::size_t position) const noexcept {
  const auto count = static_cast<std::size_t>(free);
  const auto second = server_counts == 1 ? 0 : static_cast<std::size_t>(server_free);
  return (count * server_counts + second) * members.size() + position;
}

TopologyIndex::TopologyIndex(std::shared_ptr<const Topology> topology)
    : topology_(std::move(topology)),
      first_server_(topology_->server(NodeId{0}).value),
      position_(topology_->vertices().size()),
      by_build_(topology_->servers().size() * topology_->cluster().pools.size()),
      leaf_span_(topology_->vertices().size()),
      pools_(topology_->cluster().pools.size()) {
  for (std::uint32_t i = 0; i < first_server_; ++i) {
    std::uint32_t position = 0;
    for (const VertexId child : topology_->children(VertexId{i}))
      position_[child.value] = position++;
  }
  order_leaves();
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    add_tiers(PoolId{i});
    most_tiers_ = std::max(most_tiers_, pools_[i].tiers.size());
  }
  member_start_.resize(leaves_.size() * most_tiers_);
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    add_members(PoolId{i});
    size_upper_sets(PoolId{i});
  }
}

/// Servers in the order in which a walk over the tree meets them: all that is free below a vertex
/// is then one run of the array. Four levels, each knows where its children begin once it is
/// reached.
void TopologyIndex::order_leaves() {
  const std::span<const Vertex> vertices = topology_->vertices();
  for (std::size_t i = vertices.size(); i-- > 1;) {  // first only how many: children come later
    LeafSpan& mine = leaf_span_[i];
    if (i >= first_server_) mine.end = 1;
    leaf_span_[vertices[i].parent.value].end += mine.end;
  }
  leaves_.resize(leaf_span_[Topology::root().value].end);
  for (std::uint32_t i = 0; i < first_server_; ++i) {
    std::uint32_t next = leaf_span_[i].begin;
    for (const VertexId child : topology_->children(VertexId{i})) {
      LeafSpan& span = leaf_span_[child.value];
      span = {next, next + span.end};
      next = span.end;
    }
  }
  for (std::uint32_t i = first_server_; i < vertices.size(); ++i)
    leaves_[leaf_span_[i].begin].node = NodeId{vertices[i].id};
}

/// Which (level, type) there are in the pool, and which vertices of each build belong to them. A
/// vertex of a meshed server is on two levels: NVLink if a ring of direct links is free, else the
/// bus.
void TopologyIndex::add_tiers(PoolId pool) {
  const Cluster& cluster = topology_->cluster();
  std::vector<bool> has_build(topology_->servers().size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (cluster.nodes[i].pool == pool) has_build[topology_->servers().build_of(NodeId{i})] = true;
  }
  std::map<std::pair<Level, VertexType>, std::uint32_t> ids;
  const auto for_each_level = [&](auto&& visit) {
    for (std::uint32_t build = 0; build < has_build.size(); ++build) {
      if (!has_build[build]) continue;
      const ServerTree& tree = topology_->servers()[build];
      for (std::uint32_t i = 0; i < tree.vertices.size(); ++i) {
        const InnerVertex& vertex = tree.vertices[i];
        if (vertex.type == VertexType::Device) continue;
        visit(build, i, std::pair(vertex.level, vertex.type));
        if (tree.rings && vertex.bus != vertex.level)
          visit(build, i, std::pair(vertex.bus, vertex.type));
      }
    }
  };
  for_each_level([&](std::uint32_t, std::uint32_t, auto tier) { ids.emplace(tier, 0); });
  for (auto& [tier, id] : ids) {
    id = static_cast<std::uint32_t>(pools_[pool.value].tiers.size());
    pools_[pool.value].tiers.push_back({tier.first, tier.second, {}, 1, {}});
  }
  std::vector<std::uint32_t> ordinals(has_build.size() * ids.size());
  for_each_level([&](std::uint32_t build, std::uint32_t inner, auto tier) {
    const std::uint32_t id = ids.at(tier);
    by_build_[build * pools_.size() + pool.value].push_back(
        {id, inner, ordinals[build * ids.size() + id]++});
  });
}

void TopologyIndex::add_members(PoolId pool) {
  const Cluster& cluster = topology_->cluster();
  PoolIndex& index = pools_[pool.value];
  std::size_t largest = 0;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (cluster.nodes[i].pool != pool) continue;
    largest = std::max(largest, static_cast<std::size_t>(cluster.nodes[i].gpus));
    for (std::size_t tier = 0; tier < index.tiers.size(); ++tier) {
      member_start_[i * most_tiers_ + tier] =
          static_cast<std::uint32_t>(index.tiers[tier].members.size());
    }
    for (const Membership& each : memberships(NodeId{i}))
      index.tiers[each.tier].members.push_back({NodeId{i}, each.inner});
  }
  for (InnerTier& tier : index.tiers) {
    std::size_t widest = 0;
    for (const Member& member : tier.members) {
      const InnerVertex& vertex = topology_->inside(member.node).vertices[member.inner];
      widest = std::max(widest, static_cast<std::size_t>(std::popcount(vertex.devices)));
    }
    tier.server_counts = tier.type == VertexType::Server ? 1 : largest + 1;
    tier.set = BitIndex((widest + 1) * tier.server_counts * tier.members.size());
  }
}

void TopologyIndex::size_upper_sets(PoolId pool) {
  const Cluster& cluster = topology_->cluster();
  std::vector<std::int64_t> capacity(topology_->vertices().size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (cluster.nodes[i].pool != pool) continue;
    VertexId vertex = topology_->server(NodeId{i});
    capacity[vertex.value] = cluster.nodes[i].gpus;
    while (vertex != Topology::root()) {
      vertex = (*topology_)[vertex].parent;
      capacity[vertex.value] += cluster.nodes[i].gpus;
    }
  }
  PoolIndex& index = pools_[pool.value];
  index.free.resize(first_server_);
  index.has_free.resize((leaves_.size() + 63) / 64);
  index.children.resize(first_server_);
  const auto most = [&](std::uint32_t from, std::size_t count) {
    std::int64_t result = 0;
    for (std::size_t i = from; i < from + count; ++i) result = std::max(result, capacity[i]);
    return result;
  };
  for (const Node& node : cluster.nodes) {
    if (node.pool == pool) index.largest_server = std::max(index.largest_server, node.gpus);
  }
  index.largest_rack = most(topology_->rack(RackId{0}).value, cluster.racks.size());
  index.racks = CountSet(cluster.racks.size(), index.largest_rack);
  index.zones =
      CountSet(cluster.zones.size(), most(topology_->zone(ZoneId{0}).value, cluster.zones.size()));
  for (std::uint32_t i = 0; i < first_server_; ++i) {
    if (capacity[i] == 0) continue;  // nothing of this pool below
    std::int64_t largest = 0;
    for (const VertexId child : topology_->children(VertexId{i}))
      largest = std::max(largest, capacity[child.value]);
    index.children[i] = CountSet(topology_->children(VertexId{i}).size(), largest);
  }
}

std::span<const TopologyIndex::Membership> TopologyIndex::memberships(NodeId node) const noexcept {
  const std::size_t pool = topology_->cluster().nodes[node.value].pool.value;
  return by_build_[topology_->servers().build_of(node) * pools_.size() + pool];
}

void TopologyIndex::set_free(NodeId node, std::uint64_t devices) {
  const std::uint32_t leaf = leaf_of(node);
  const std::uint64_t before = leaves_[leaf].devices;
  if (before == devices) return;
  leaves_[leaf].devices = devices;
  const std::int32_t server_from = std::popcount(before);
  const std::int32_t server_to = std::popcount(devices);
  PoolIndex& index = pools_[topology_->cluster().nodes[node.value].pool.value];
  const std::uint64_t bit = std::uint64_t{1} << (leaf % 64);
  if (devices != 0)
    index.has_free[leaf / 64] |= bit;
  else
    index.has_free[leaf / 64] &= ~bit;
  const ServerTree& tree = topology_->inside(node);
  for (const Membership& each : memberships(node)) {
    InnerTier& tier = index.tiers[each.tier];
    const std::uint64_t mine = tree.vertices[each.inner].devices;
    const std::int32_t from = std::popcount(before & mine);
    const std::int32_t to = std::popcount(devices & mine);
    const std::size_t position = member_start_[node.value * most_tiers_ + each.tier] + each.ordinal;
    const std::size_t old_key = tier.key(from, server_from, position);
    const std::size_t new_key = tier.key(to, server_to, position);
    if (from > 0 && (old_key != new_key || to == 0)) tier.set.erase(old_key);
    if (to > 0 && (old_key != new_key || from == 0)) tier.set.insert(new_key);
  }
  if (server_from != server_to) move_upper(node, server_from, server_to);
}

void TopologyIndex::move_upper(NodeId node, std::int32_t from, std::int32_t to) {
  PoolIndex& index = pools_[topology_->cluster().nodes[node.value].pool.value];
  const std::int32_t change = to - from;
  for (VertexId vertex = topology_->server(node); vertex != Topology::root();) {
    const Vertex& row = (*topology_)[vertex];
    if (row.type == VertexType::Rack) index.racks.move(row.id, from, to);
    if (row.type == VertexType::Zone) index.zones.move(row.id, from, to);
    index.children[row.parent.value].move(position_[vertex.value], from, to);
    vertex = row.parent;
    from = index.free[vertex.value];
    to = from + change;
    index.free[vertex.value] = to;
  }
}

Level TopologyIndex::lowest_possible(PoolId pool, std::int32_t gpus) const noexcept {
  const PoolIndex& index = pools_[pool.value];
  if (gpus <= index.largest_server) return Level::Server;
  return gpus <= index.largest_rack ? Level::Rack : Level::CrossRack;
}

std::int32_t TopologyIndex::free_devices(VertexId vertex, PoolId pool) const noexcept {
  if (vertex.value < first_server_) return pools_[pool.value].free[vertex.value];
  const NodeId node{(*topology_)[vertex].id};
  return topology_->cluster().nodes[node.value].pool == pool ? std::popcount(free_mask(node)) : 0;
}

std::int32_t TopologyIndex::max_free_child(VertexId vertex, PoolId pool) const noexcept {
  if (vertex.value < first_server_) {
    const CountSet& children = pools_[pool.value].children[vertex.value];
    if (!children.is_made()) return 0;
    const auto last = children.last_below(free_devices(vertex, pool) + 1);
    return last ? last->count : 0;
  }
  const NodeId node{(*topology_)[vertex].id};
  const ServerTree& tree = topology_->inside(node);
  const InnerVertex& server = tree.vertices.front();
  std::int32_t result = 0;
  for (std::uint32_t i = 0; i < server.child_count; ++i) {
    const std::uint64_t mine = tree.vertices[server.first_child + i].devices;
    result = std::max(result, std::popcount(free_mask(node) & mine));
  }
  return topology_->cluster().nodes[node.value].pool == pool ? result : 0;
}

}  // namespace berth
