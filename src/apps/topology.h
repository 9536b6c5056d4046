// `berth topology CLUSTER|local [--json]`: the cluster as a tree, for people and programs. Equal
// neighbours are drawn once ("x16"), so a cluster of 100,000 devices fits on a screen.
#pragma once

#include <string>

#include "apps/terminal.h"
#include "model/cluster.h"

namespace berth {

struct TopologyOptions {
  std::string cluster;  // short form, file, or "local": this machine
  bool json = false;
};

[[nodiscard]] Exit execute(const TopologyOptions& options);

[[nodiscard]] std::string draw_topology(const Cluster& cluster);
[[nodiscard]] std::string topology_json(const Cluster& cluster);

}  // namespace berth
