// The cluster as it is built: nodes, their devices, racks, links. Immutable once made; what is free
// at a moment lives in core/cluster_state.h. All devices of one type form a pool: a gang never
// mixes pools. Node and pool ids follow the order of the description, so results do not depend on
// hashing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "model/catalogue.h"

namespace berth {

inline constexpr std::int32_t kMaxGpusPerNode = 64;  // a node's devices are one machine word
inline constexpr std::int32_t kMaxNodes = 1'000'000;

/// How the devices of one node hang together; devices are numbered along it.
struct NodeShape {
  std::int32_t sockets = 1;
  std::int32_t switches = 0;       // PCIe switches in the node; 0 = not described
  std::int32_t nvlink_island = 0;  // devices per NVLink island; 0 = none
  friend bool operator==(const NodeShape&, const NodeShape&) = default;
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
};

struct Links {  // bytes per second between neighbours at each level
  double nvlink = 130e9;
  double pcie = 12e9;
  double socket = 9e9;
  double rack = 5e9;
  double cross_rack = 2.5e9;
};

struct Cluster {
  std::string name;                // the short form, or the file's name
  std::vector<DeviceType> pools;   // by PoolId
  std::vector<std::string> racks;  // by RackId; at least one
  std::vector<Node> nodes;         // by NodeId
  Links links;

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
