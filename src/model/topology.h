// The cluster as a tree: cluster > zone > rack > server > socket > switch or NVLink island >
// device. The upper part (down to servers) is one flat array; the inside of a server is a small
// tree of device masks that all servers of one build share, so 100,000 devices cost what 12,500
// servers do. Immutable; the cluster must outlive it. What is free at a moment lives in
// core/topology_index.h.
//
// A vertex has a level: which link an all-reduce over its devices is bound by. NVLink wins over
// what else connects two devices, so a socket inside of an island has the level of the island.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/cluster.h"
#include "model/nvlink_rings.h"

namespace berth {

using VertexId = Id<struct VertexTag>;

/// In the order in which equally fast ones are looked through: small before large.
enum class VertexType : std::uint8_t {
  Device,
  Switch,
  Socket,
  Island,
  Server,
  Rack,
  Zone,
  Cluster
};
[[nodiscard]] std::string_view to_string(VertexType type) noexcept;

struct Vertex {
  VertexType type = VertexType::Cluster;
  Level level = Level::CrossRack;
  std::uint32_t id = 0;  // the ZoneId, RackId or NodeId it stands for
  VertexId parent;       // of the root: itself
  std::uint32_t first_child = 0;
  std::uint32_t child_count = 0;
  Link up;  // to its siblings
};

struct InnerVertex {
  VertexType type = VertexType::Server;
  Level level = Level::Server;
  Level bus = Level::Server;      // the level without NVLink: what is left where a link is broken
  std::uint32_t parent = 0;       // of the server: itself
  std::uint32_t first_child = 0;  // children are neighbours in the array
  std::uint32_t child_count = 0;
  std::uint64_t devices = 0;
  Link up;
};

/// The inside of a server: vertex 0 is the server, parents come before their children, and the
/// children of a vertex are ordered by their lowest device.
struct ServerTree {
  std::vector<InnerVertex> vertices;
  std::shared_ptr<const NvlinkRings> rings;  // with an NVLink matrix of at most eight devices

  /// How far apart these devices are: the level of their lowest common ancestor, or of the best
  /// ring through them where the mesh is described link by link.
  [[nodiscard]] Level level_of(std::uint64_t devices) const noexcept;
  /// The lowest level of any so many of its devices; there must be so many.
  [[nodiscard]] Level lowest_level(std::int32_t gpus) const noexcept;
};

/// Devices of one node.
struct DeviceSet {
  NodeId node;
  std::uint64_t devices = 0;
  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;
};

/// The insides of all servers of a cluster: nodes of one build share a tree. All that is needed to
/// say how far apart the devices of a gang are. The cluster must outlive it.
class ServerBuilds {
 public:
  explicit ServerBuilds(const Cluster& cluster);

  [[nodiscard]] const Cluster& cluster() const noexcept { return *cluster_; }
  [[nodiscard]] std::size_t size() const noexcept { return trees_.size(); }
  [[nodiscard]] std::uint32_t build_of(NodeId node) const noexcept { return build_of_[node.value]; }
  [[nodiscard]] const ServerTree& operator[](std::uint32_t build) const noexcept {
    return trees_[build];
  }
  [[nodiscard]] const ServerTree& inside(NodeId node) const noexcept {
    return trees_[build_of_[node.value]];
  }
  /// The level of the lowest common ancestor of a gang; parts (`node`, `devices`) of one node each,
  /// in any order.
  template <class Part>
  [[nodiscard]] Level level_of(std::span<const Part> gang) const noexcept {
    if (gang.empty()) return Level::Device;
    const NodeId first = gang.front().node;
    if (gang.size() == 1) return inside(first).level_of(gang.front().devices);
    for (const Part& part : gang) {
      if (cluster_->nodes[part.node.value].rack != cluster_->nodes[first.value].rack)
        return Level::CrossRack;
    }
    return Level::Rack;
  }

 private:
  const Cluster* cluster_;
  std::vector<ServerTree> trees_;
  std::vector<std::uint32_t> build_of_;  // by NodeId
};

class Topology {
 public:
  explicit Topology(const Cluster& cluster);

  [[nodiscard]] const Cluster& cluster() const noexcept { return servers_.cluster(); }
  /// Cluster, zones, racks and servers, in this order and by their ids.
  [[nodiscard]] std::span<const Vertex> vertices() const noexcept { return vertices_; }
  [[nodiscard]] const Vertex& operator[](VertexId id) const noexcept { return vertices_[id.value]; }
  [[nodiscard]] std::span<const VertexId> children(VertexId id) const noexcept {
    const Vertex& vertex = vertices_[id.value];
    return std::span(children_).subspan(vertex.first_child, vertex.child_count);
  }
  [[nodiscard]] static constexpr VertexId root() noexcept { return VertexId{0}; }
  [[nodiscard]] VertexId zone(ZoneId zone) const noexcept { return VertexId{1 + zone.value}; }
  [[nodiscard]] VertexId rack(RackId rack) const noexcept {
    return VertexId{first_rack_ + rack.value};
  }
  [[nodiscard]] VertexId server(NodeId node) const noexcept {
    return VertexId{first_server_ + node.value};
  }

  [[nodiscard]] const ServerBuilds& servers() const noexcept { return servers_; }
  [[nodiscard]] const ServerTree& inside(NodeId node) const noexcept {
    return servers_.inside(node);
  }
  [[nodiscard]] Level level_of(std::span<const DeviceSet> gang) const noexcept {
    return servers_.level_of(gang);
  }

 private:
  void add_upper_vertices();
  void link_children();

  ServerBuilds servers_;
  std::vector<Vertex> vertices_;
  std::vector<VertexId> children_;
  std::uint32_t first_rack_ = 0;
  std::uint32_t first_server_ = 0;
};

/// The inside of one node; what ServerBuilds is made of, for tests and drawings.
[[nodiscard]] ServerTree make_server_tree(const Cluster& cluster, const Node& node);

}  // namespace berth
