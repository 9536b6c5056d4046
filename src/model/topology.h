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
};

/// Devices of one node.
struct DeviceSet {
  NodeId node;
  std::uint64_t devices = 0;
  friend bool operator==(const DeviceSet&, const DeviceSet&) = default;
};

class Topology {
 public:
  explicit Topology(const Cluster& cluster);

  [[nodiscard]] const Cluster& cluster() const noexcept { return *cluster_; }
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

  [[nodiscard]] std::size_t builds() const noexcept { return trees_.size(); }
  /// Which of the distinct server builds a node has.
  [[nodiscard]] std::uint32_t build_of(NodeId node) const noexcept { return build_of_[node.value]; }
  [[nodiscard]] const ServerTree& build(std::uint32_t index) const noexcept {
    return trees_[index];
  }
  [[nodiscard]] const ServerTree& inside(NodeId node) const noexcept {
    return trees_[build_of_[node.value]];
  }

  /// The level of the lowest common ancestor of a gang; sets of one node each, in any order.
  [[nodiscard]] Level level_of(std::span<const DeviceSet> gang) const noexcept;

 private:
  void add_upper_vertices();
  void link_children();
  void add_builds();

  const Cluster* cluster_;
  std::vector<Vertex> vertices_;
  std::vector<VertexId> children_;
  std::uint32_t first_rack_ = 0;
  std::uint32_t first_server_ = 0;
  std::vector<ServerTree> trees_;
  std::vector<std::uint32_t> build_of_;  // by NodeId
};

/// The inside of one node; what Topology is made of, for tests and drawings.
[[nodiscard]] ServerTree make_server_tree(const Cluster& cluster, const Node& node);

}  // namespace berth
