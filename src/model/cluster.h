// The cluster as it is built: nodes, their devices, racks, links. Immutable once made; what is free
// at a moment lives in core/cluster_state.h. All devices of one type form a pool: a gang never
// mixes pools. Node and pool ids follow the order of the description, so results do not depend on
// hashing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "model/catalogue.h"
#include "model/level.h"

namespace berth {

using ZoneId = Id<struct ZoneTag>;  // a pod or room: racks that stand together

inline constexpr std::int32_t kMaxGpusPerNode = 64;  // a node's devices are one machine word
inline constexpr std::int32_t kMaxNodes = 1'000'000;

/// How the devices of one node hang together; devices are numbered along it.
struct NodeShape {
  std::int32_t sockets = 1;
  std::int32_t switches = 0;       // PCIe switches in the node; 0 = not described
  std::int32_t nvlink_island = 0;  // devices per NVLink island; 0 = none
  friend bool operator==(const NodeShape&, const NodeShape&) = default;
};

/// Direct NVLink bandwidth between the devices of one node, in bytes per second. Zero is no link
/// (or a broken one): that pair talks over the next level up of the tree.
struct NvlinkMatrix {
  std::int32_t devices = 0;
  std::vector<double> bandwidth;  // devices x devices, symmetric

  [[nodiscard]] double at(std::int32_t a, std::int32_t b) const noexcept {
    return bandwidth[static_cast<std::size_t>(a) * static_cast<std::size_t>(devices) +
                     static_cast<std::size_t>(b)];
  }
};

struct Node {
  std::string name;
  PoolId pool;
  RackId rack;
  std::int32_t gpus = 0;
  std::int64_t cpus_milli = 0;  // 0 = not described: never a limit
  std::int64_t memory_mib = 0;  // 0 = not described: never a limit
  double idle_watts = 0;        // the server without its devices
  double busy_watts = 0;
  NodeShape shape;
  std::optional<std::uint32_t> nvlink;  // index into Cluster::nvlinks
  bool stays_on = false;                // nothing can, or nobody may, switch it off
};

/// Bytes per second between neighbours at each level, and the seconds one message takes to pass.
struct Links {
  double nvlink = 130e9;
  double pcie = 12e9;
  double socket = 9e9;
  double rack = 5e9;
  double cross_rack = 2.5e9;
  double nvlink_latency = 5e-6;
  double pcie_latency = 1e-5;
  double socket_latency = 1.5e-5;
  double rack_latency = 3e-5;
  double cross_rack_latency = 6e-5;

  [[nodiscard]] constexpr Link at(Level level) const noexcept {
    switch (level) {
      case Level::Device:
      case Level::Nvlink: return {nvlink, nvlink_latency};
      case Level::Pcie: return {pcie, pcie_latency};
      case Level::Server: return {socket, socket_latency};
      case Level::Rack: return {rack, rack_latency};
      case Level::CrossRack: break;
    }
    return {cross_rack, cross_rack_latency};
  }
};

struct Cluster {
  std::string name;                // the short form, or the file's name
  std::vector<DeviceType> pools;   // by PoolId
  std::vector<std::string> racks;  // by RackId; at least one
  std::vector<Node> nodes;         // by NodeId
  Links links;
  std::vector<std::string> zones{"z0"};  // by ZoneId; at least one
  std::vector<ZoneId> rack_zones;        // by RackId; racks beyond its end stand in the first zone
  std::vector<NvlinkMatrix> nvlinks;     // one per distinct description, shared by its nodes

  [[nodiscard]] ZoneId zone_of(RackId rack) const noexcept {
    return rack.value < rack_zones.size() ? rack_zones[rack.value] : ZoneId{0};
  }

  [[nodiscard]] std::int64_t total_gpus() const noexcept;
  [[nodiscard]] std::int64_t total_gpus(PoolId pool) const noexcept;
  [[nodiscard]] std::int32_t largest_node() const noexcept;
};

/// "16x4", "8x8:a100,16x4:v100": NODESxGPUS[:TYPE], joined by commas. Unknown types are taken as
/// new device types with nominal figures.
[[nodiscard]] Result<Cluster> parse_cluster_short(std::string_view text);
/// The YAML cluster file (docs/formats/cluster.md). `name` is for messages.
[[nodiscard]] Result<Cluster> parse_cluster_yaml(std::string_view text, const std::string& name);
/// What --cluster takes: the short form, or the path of a YAML file.
[[nodiscard]] Result<Cluster> load_cluster(const std::string& argument);

}  // namespace berth
