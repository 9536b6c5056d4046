// Any bytes as a cluster file: a Cluster or an Error, never a crash, a hang or a throw. What is
// accepted keeps the promises the engine builds on.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cluster = berth::parse_cluster_yaml(text, "fuzz.yaml");
  if (!cluster) {
    BERTH_CHECK(!cluster.error().messages.empty(), "an error says something");
    for (const std::string& message : cluster.error().messages) {
      BERTH_CHECK(message.starts_with("fuzz.yaml:"), "an error says where");
    }
    return 0;
  }
  BERTH_CHECK(!cluster->nodes.empty() && !cluster->racks.empty() && !cluster->pools.empty(),
              "a cluster has nodes");
  for (const berth::Node& node : cluster->nodes) {
    BERTH_CHECK(node.gpus >= 1 && node.gpus <= berth::kMaxGpusPerNode,
                "a node's devices are one machine word");
    BERTH_CHECK(node.pool.value < cluster->pools.size(), "a node's pool exists");
    BERTH_CHECK(node.rack.value < cluster->racks.size(), "a node's rack exists");
    BERTH_CHECK(!node.name.empty() && node.cpus_milli >= 0 && node.memory_mib >= 0,
                "a node's figures are sane");
  }
  return 0;
}
