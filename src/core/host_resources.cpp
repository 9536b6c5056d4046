#include "core/host_resources.h"

#include "base/check.h"

namespace berth {

HostResources::HostResources(const Cluster& cluster)
    : nodes_(cluster.nodes.size()), pools_(cluster.pools.size()) {
  // A total limits only where every node adds to it: a node that is not described has no end of
  // cores.
  for (const Node& node : cluster.nodes) {
    pools_[node.pool.value].limits_cpus = true;
    pools_[node.pool.value].limits_memory = true;
  }
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    PoolRow& pool = pools_[node.pool.value];
    if (node.cpus_milli > 0) {
      nodes_[i].cpus_milli = node.cpus_milli;
      pool.cpus_milli += node.cpus_milli;
    }
    pool.limits_cpus = pool.limits_cpus && node.cpus_milli > 0;
    if (node.memory_mib > 0) {
      nodes_[i].memory_mib = node.memory_mib;
      pool.memory_mib += node.memory_mib;
    }
    pool.limits_memory = pool.limits_memory && node.memory_mib > 0;
  }
}

void HostResources::take(const Slice& slice, const Shape& shape) {
  NodeRow& row = nodes_[slice.node.value];
  row.without_device += slice.gpus == 0 ? 1 : 0;
  if (row.cpus_milli != kUnlimited) row.cpus_milli -= slice.workers() * shape.cpus_milli_per_gpu;
  if (row.memory_mib != kUnlimited) row.memory_mib -= slice.workers() * shape.memory_mib_per_gpu;
  BERTH_CHECK(row.cpus_milli >= 0 && row.memory_mib >= 0, "no core or memory is given twice");
}

void HostResources::give(const Slice& slice, const Shape& shape) {
  NodeRow& row = nodes_[slice.node.value];
  row.without_device -= slice.gpus == 0 ? 1 : 0;
  if (row.cpus_milli != kUnlimited) row.cpus_milli += slice.workers() * shape.cpus_milli_per_gpu;
  if (row.memory_mib != kUnlimited) row.memory_mib += slice.workers() * shape.memory_mib_per_gpu;
}

bool HostResources::has_room(PoolId pool, const Shape& shape) const noexcept {
  const PoolRow& row = pools_[pool.value];
  const auto need = [&](std::int32_t per_gpu) { return std::int64_t{shape.gpus} * per_gpu; };
  if (row.limits_cpus && need(shape.cpus_milli_per_gpu) > row.cpus_milli) return false;
  return !row.limits_memory || need(shape.memory_mib_per_gpu) <= row.memory_mib;
}

void HostResources::take(PoolId pool, const Shape& shape) {
  PoolRow& row = pools_[pool.value];
  if (row.limits_cpus) row.cpus_milli -= std::int64_t{shape.gpus} * shape.cpus_milli_per_gpu;
  if (row.limits_memory) row.memory_mib -= std::int64_t{shape.gpus} * shape.memory_mib_per_gpu;
}

void HostResources::give(PoolId pool, const Shape& shape) {
  PoolRow& row = pools_[pool.value];
  if (row.limits_cpus) row.cpus_milli += std::int64_t{shape.gpus} * shape.cpus_milli_per_gpu;
  if (row.limits_memory) row.memory_mib += std::int64_t{shape.gpus} * shape.memory_mib_per_gpu;
}

}  // namespace berth
