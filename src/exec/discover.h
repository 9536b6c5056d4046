// This machine as a cluster of one node: sockets, cores and memory by hwloc, GPUs and the links
// between them by the NVIDIA driver where there is one. Devices of several types make a node per
// type, which share out cores and memory by their devices.
#pragma once

#include <string>

#include "base/result.h"
#include "model/cluster.h"

namespace berth {

struct DiscoverOptions {
  std::string host;       // empty: what this machine is called
  std::string synthetic;  // a hwloc description ("pack:2 core:8 pu:2") instead of this machine
  std::string nvml_library = "libnvidia-ml.so.1";
};

[[nodiscard]] Result<Cluster> discover_cluster(const DiscoverOptions& options = {});

/// The catalogue's row for a name as drivers spell it ("NVIDIA A100-SXM4-80GB") and its memory; a
/// row of its own for a device nobody described.
[[nodiscard]] DeviceType device_type_for(const std::string& name, std::int64_t memory_mib);

}  // namespace berth
