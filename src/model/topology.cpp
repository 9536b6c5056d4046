#include "model/topology.h"

#include <map>
#include <tuple>

namespace berth {

std::string_view to_string(VertexType type) noexcept {
  switch (type) {
    case VertexType::Device: return "device";
    case VertexType::Switch: return "switch";
    case VertexType::Socket: return "socket";
    case VertexType::Island: return "island";
    case VertexType::Server: return "server";
    case VertexType::Rack: return "rack";
    case VertexType::Zone: return "zone";
    case VertexType::Cluster: break;
  }
  return "cluster";
}

Topology::Topology(const Cluster& cluster) : servers_(cluster) {
  add_upper_vertices();
  link_children();
}

// Ids are dense and in order (cluster, zones, racks, servers), so that a vertex is found by
// arithmetic; what is inside of a server is shared between servers of one build.
void Topology::add_upper_vertices() {
  const Cluster& described = cluster();
  const Links& links = described.links;
  const auto count = [](const auto& rows) { return static_cast<std::uint32_t>(rows.size()); };
  first_rack_ = 1 + count(described.zones);
  first_server_ = first_rack_ + count(described.racks);
  vertices_.reserve(first_server_ + described.nodes.size());
  vertices_.push_back({});
  for (std::uint32_t i = 0; i < described.zones.size(); ++i) {
    vertices_.push_back(
        {VertexType::Zone, Level::CrossRack, i, root(), 0, 0, links.at(Level::CrossRack)});
  }
  for (std::uint32_t i = 0; i < described.racks.size(); ++i) {
    vertices_.push_back({VertexType::Rack, Level::Rack, i, zone(described.zone_of(RackId{i})), 0, 0,
                         links.at(Level::CrossRack)});
  }
  for (std::uint32_t i = 0; i < described.nodes.size(); ++i) {
    vertices_.push_back({VertexType::Server, inside(NodeId{i}).vertices.front().level, i,
                         rack(described.nodes[i].rack), 0, 0, links.at(Level::Rack)});
  }
}

/// Two passes: how many children each has, then who they are, in order of their ids.
void Topology::link_children() {
  for (std::size_t i = 1; i < vertices_.size(); ++i)
    ++vertices_[vertices_[i].parent.value].child_count;
  std::uint32_t next = 0;
  for (Vertex& vertex : vertices_) {
    vertex.first_child = next;
    next += vertex.child_count;
  }
  children_.resize(next);
  std::vector<std::uint32_t> filled(vertices_.size());
  for (std::uint32_t i = 1; i < vertices_.size(); ++i) {
    const std::uint32_t parent = vertices_[i].parent.value;
    children_[vertices_[parent].first_child + filled[parent]++] = VertexId{i};
  }
}

// A cluster has few kinds of server: one tree for each, and an index per node.
ServerBuilds::ServerBuilds(const Cluster& cluster) : cluster_(&cluster) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::uint32_t>;
  std::map<Key, std::uint32_t> known;
  build_of_.reserve(cluster.nodes.size());
  for (const Node& node : cluster.nodes) {
    const Key key{node.gpus, node.shape.sockets, node.shape.switches, node.shape.nvlink_island,
                  node.nvlink ? *node.nvlink + 1 : 0};
    const auto [entry, fresh] = known.try_emplace(key, static_cast<std::uint32_t>(trees_.size()));
    if (fresh) trees_.push_back(make_server_tree(cluster, node));
    build_of_.push_back(entry->second);
  }
}

}  // namespace berth
