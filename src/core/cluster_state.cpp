#include "core/cluster_state.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/device_mask.h"

namespace berth {

namespace {
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::uint64_t all_devices(std::int32_t count) noexcept {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << static_cast<unsigned>(count)) - 1;
}

/// One for each device; who asks for no device is one as well.
std::int64_t workers(const Slice& slice) noexcept { return std::max(1, slice.gpus); }
}  // namespace

ClusterState::ClusterState(const Cluster& cluster, Mode mode)
    : cluster_(&cluster),
      mode_(mode),
      rack_nodes_(cluster.racks.size()),
      nodes_(cluster.nodes.size()),
      pools_(cluster.pools.size()) {
  // A total limits only where every node adds to it: one that is not described has no end of cores.
  for (const Node& node : cluster.nodes) {
    pools_[node.pool.value].limits_cpus = true;
    pools_[node.pool.value].limits_memory = true;
  }
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    PoolRow& pool = pools_[node.pool.value];
    const auto buckets = static_cast<std::size_t>(node.gpus) + 1;
    while (pool.by_free.size() < buckets) pool.by_free.emplace_back(cluster.nodes.size());
    pool.rack_free.resize(cluster.racks.size());
    rack_nodes_[node.rack.value].push_back(NodeId{i});
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
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    nodes_[i].up = false;
    enter_service(NodeId{i});
    add_kind(NodeId{i});
  }
}

void ClusterState::add_kind(NodeId node) {
  const Node& described = cluster_->nodes[node.value];
  std::vector<NodeKind>& kinds = pools_[described.pool.value].kinds;
  const auto found = std::ranges::find_if(kinds, [&](const NodeKind& kind) {
    return kind.gpus == described.gpus && kind.cpus_milli == described.cpus_milli &&
           kind.memory_mib == described.memory_mib;
  });
  nodes_[node.value].kind = static_cast<std::uint32_t>(found - kinds.begin());
  if (found == kinds.end()) {
    kinds.push_back({.gpus = described.gpus,
                     .cpus_milli = described.cpus_milli,
                     .memory_mib = described.memory_mib,
                     .working = 1});
  } else {
    ++found->working;
  }
}

void ClusterState::track_topology() {
  const auto tree = std::make_shared<const Topology>(*cluster_);
  topology_.emplace(tree);
  if (devices_) slots_.emplace(tree);
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    tell(NodeId{i}, all_devices(cluster_->nodes[i].gpus));
}

void ClusterState::tell(NodeId node, std::uint64_t devices) {
  if (topology_) topology_->set_free(node, nodes_[node.value].mask);
  if (changes_.log) changes_.log->note(node);
  if (!slots_) return;
  for_each_device(devices, [&](std::int32_t device) {
    slots_->set_free(node, device, is_up(node) ? free_slots(node, device) : 0);
  });
}

void ClusterState::add_free(NodeId node, std::int32_t change) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  PoolRow& pool = pools_[described.pool.value];
  pool.by_free[static_cast<std::size_t>(row.free)].erase(node);
  row.free += change;
  pool.by_free[static_cast<std::size_t>(row.free)].insert(node);
  pool.free += change;
  pool.rack_free[described.rack.value] += change;
  free_ += change;
}

std::int32_t ClusterState::side_room_on(NodeId node, const Shape& shape) const noexcept {
  const NodeRow& row = nodes_[node.value];
  std::int64_t room = cluster_->nodes[node.value].gpus;
  if (shape.cpus_milli_per_gpu > 0 && row.cpus_milli != kUnlimited) {
    room = std::min(room, row.cpus_milli / shape.cpus_milli_per_gpu);
  }
  if (shape.memory_mib_per_gpu > 0 && row.memory_mib != kUnlimited) {
    room = std::min(room, row.memory_mib / shape.memory_mib_per_gpu);
  }
  return static_cast<std::int32_t>(room);
}

bool ClusterState::has_side_room(PoolId pool, const Shape& shape) const noexcept {
  const PoolRow& row = pools_[pool.value];
  const auto need = [&](std::int32_t per_gpu) { return std::int64_t{shape.gpus} * per_gpu; };
  if (row.limits_cpus && need(shape.cpus_milli_per_gpu) > row.cpus_milli) return false;
  return !(row.limits_memory && need(shape.memory_mib_per_gpu) > row.memory_mib);
}

void ClusterState::take(std::span<const Slice> slices, const Shape& shape, JobId job,
                        DeviceUse use) {
  for (const Slice& slice : slices) {
    NodeRow& row = nodes_[slice.node.value];
    BERTH_CHECK(std::popcount(slice.devices) == slice.gpus, "a slice counts its own devices");
    const std::uint64_t emptied = devices_ ? join(slice, job, use) : slice.devices;
    BERTH_CHECK(row.up && (emptied & ~row.mask) == 0, "no device is given twice");
    row.mask &= ~emptied;
    tell(slice.node, slice.devices);
    add_free(slice.node, -std::popcount(emptied));
    row.cores_only += slice.gpus == 0 ? 1 : 0;
    if (row.cpus_milli != kUnlimited) row.cpus_milli -= workers(slice) * shape.cpus_milli_per_gpu;
    if (row.memory_mib != kUnlimited) row.memory_mib -= workers(slice) * shape.memory_mib_per_gpu;
    BERTH_CHECK(row.cpus_milli >= 0 && row.memory_mib >= 0, "no core or memory is given twice");
    if (buses_) buses_->enter(slice.node, {job, shape.bus_milli});
  }
}

void ClusterState::give(std::span<const Slice> slices, const Shape& shape, JobId job,
                        DeviceUse use) {
  for (const Slice& slice : slices) {
    NodeRow& row = nodes_[slice.node.value];
    const std::uint64_t freed = devices_ ? leave(slice, job, use) : slice.devices;
    BERTH_CHECK((freed & row.mask) == 0, "only a taken device comes back");
    row.mask |= freed;
    tell(slice.node, slice.devices);
    add_free(slice.node, std::popcount(freed));
    row.cores_only -= slice.gpus == 0 ? 1 : 0;
    if (row.cpus_milli != kUnlimited) row.cpus_milli += workers(slice) * shape.cpus_milli_per_gpu;
    if (row.memory_mib != kUnlimited) row.memory_mib += workers(slice) * shape.memory_mib_per_gpu;
    if (buses_) buses_->leave(slice.node, job);
  }
}

std::uint64_t ClusterState::join(const Slice& slice, JobId job, const DeviceUse& use) {
  std::uint64_t first_on = 0;
  PoolRow& pool = pools_[cluster_->nodes[slice.node.value].pool.value];
  for_each_device(slice.devices, [&](std::int32_t device) {
    const std::int32_t before = free_milli(slice.node, device);
    if (devices_->add(slice.node, device, job, use))
      first_on |= std::uint64_t{1} << static_cast<unsigned>(device);
    pool.free_milli += free_milli(slice.node, device) - before;
  });
  return first_on;
}

std::uint64_t ClusterState::leave(const Slice& slice, JobId job, const DeviceUse& use) {
  std::uint64_t last_off = 0;
  PoolRow& pool = pools_[cluster_->nodes[slice.node.value].pool.value];
  for_each_device(slice.devices, [&](std::int32_t device) {
    const std::int32_t before = free_milli(slice.node, device);
    if (devices_->remove(slice.node, device, job, use))
      last_off |= std::uint64_t{1} << static_cast<unsigned>(device);
    pool.free_milli += free_milli(slice.node, device) - before;
  });
  return last_off;
}

/// A device with a job that is no fraction, or with as many as it can be shared by, has nothing
/// left to give in thousandths.
std::int32_t ClusterState::free_milli(NodeId node, std::int32_t device) const noexcept {
  const std::size_t jobs = devices_->jobs(node, device).size();
  if (jobs == 0) return 1000;
  const std::int32_t used = devices_->milli_used(node, device);
  const auto most = std::min<std::size_t>(kMaxSharers, static_cast<std::size_t>(slots_of(node)));
  return used > 0 && jobs < most ? 1000 - used : 0;
}

std::int32_t ClusterState::free_slots(NodeId node, std::int32_t device) const noexcept {
  const auto jobs = static_cast<std::int32_t>(devices_->jobs(node, device).size());
  const std::int32_t left = free_milli(node, device) * slots_of(node) / 1000;
  return std::clamp(slots_of(node) - jobs, 0, left);
}

std::int64_t ClusterState::free_memory_mib(NodeId node, std::int32_t device) const noexcept {
  const PoolId pool = cluster_->nodes[node.value].pool;
  const std::int64_t described = cluster_->pools[pool.value].memory_mib;
  if (described <= 0) return kUnlimited;  // not described: never a limit
  return described - devices_->memory_used(node, device);
}

void ClusterState::jobs_on(NodeId node, std::vector<JobId>& jobs) const {
  jobs.clear();
  for (std::int32_t device = 0; device < cluster_->nodes[node.value].gpus; ++device) {
    const auto here = devices_->jobs(node, device);
    jobs.insert(jobs.end(), here.begin(), here.end());
  }
  std::ranges::sort(jobs);
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
}

bool ClusterState::can_join(std::span<const Slice> slices, const Shape& shape, const DeviceUse& use,
                            std::int32_t limit) const noexcept {
  const auto device_has_room = [&](NodeId node, std::int32_t device) {
    const auto here = devices_->jobs(node, device);
    if (static_cast<std::int32_t>(here.size()) >= limit) return false;
    if (use.milli < 1000 && free_milli(node, device) < use.milli) return false;
    return here.empty() || use.memory_mib <= free_memory_mib(node, device);
  };
  return std::ranges::all_of(slices, [&](const Slice& slice) {
    const NodeRow& row = nodes_[slice.node.value];
    if (!row.up) return false;
    if (row.cpus_milli != kUnlimited && workers(slice) * shape.cpus_milli_per_gpu > row.cpus_milli)
      return false;
    if (row.memory_mib != kUnlimited && workers(slice) * shape.memory_mib_per_gpu > row.memory_mib)
      return false;
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      if (!device_has_room(slice.node, device)) return false;
    }
    return true;
  });
}

void ClusterState::change_memory(std::span<const Slice> slices, std::int32_t change) noexcept {
  for (const Slice& slice : slices) {
    for_each_device(slice.devices, [&](std::int32_t device) {
      devices_->change_memory(slice.node, device, change);
    });
  }
}

void ClusterState::take_count(PoolId pool, const Shape& shape) {
  PoolRow& row = pools_[pool.value];
  BERTH_CHECK(row.free >= shape.gpus, "no device is given twice");
  row.free -= shape.gpus;
  free_ -= shape.gpus;
  if (row.limits_cpus) row.cpus_milli -= std::int64_t{shape.gpus} * shape.cpus_milli_per_gpu;
  if (row.limits_memory) row.memory_mib -= std::int64_t{shape.gpus} * shape.memory_mib_per_gpu;
}

void ClusterState::give_count(PoolId pool, const Shape& shape) {
  PoolRow& row = pools_[pool.value];
  row.free += shape.gpus;
  free_ += shape.gpus;
  if (row.limits_cpus) row.cpus_milli += std::int64_t{shape.gpus} * shape.cpus_milli_per_gpu;
  if (row.limits_memory) row.memory_mib += std::int64_t{shape.gpus} * shape.memory_mib_per_gpu;
}

bool ClusterState::is_free(std::span<const Slice> slices, const Shape& shape) const noexcept {
  return std::ranges::all_of(slices, [&](const Slice& slice) {
    const NodeRow& row = nodes_[slice.node.value];
    return row.up && (slice.devices & ~row.mask) == 0 &&
           side_room_on(slice.node, shape) >= workers(slice);
  });
}

void ClusterState::set_down(NodeId node) { set_failed(node, true); }

void ClusterState::set_up(NodeId node) { set_failed(node, false); }

void ClusterState::set_failed(NodeId node, bool failed) {
  NodeRow& row = nodes_[node.value];
  if (row.failed != failed)
    pools_[cluster_->nodes[node.value].pool.value].kinds[row.kind].working += failed ? -1 : 1;
  row.failed = failed;
  refresh(node);
}

void ClusterState::set_power(NodeId node, PowerState power) {
  nodes_[node.value].power = power;
  refresh(node);
}

void ClusterState::refresh(NodeId node) {
  const NodeRow& row = nodes_[node.value];
  const bool in_service = !row.failed && row.power == PowerState::On;
  if (in_service == row.up) return;
  in_service ? enter_service(node) : leave_service(node);
}

void ClusterState::leave_service(NodeId node) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  PoolRow& pool = pools_[described.pool.value];
  BERTH_CHECK(row.free == described.gpus, "a node leaves service empty");
  row.up = false;
  row.mask = 0;
  tell(node, all_devices(described.gpus));
  pool.by_free[static_cast<std::size_t>(row.free)].erase(node);
  row.free = 0;
  pool.free -= described.gpus;
  pool.free_milli -= std::int64_t{1000} * described.gpus;
  pool.usable -= described.gpus;
  pool.rack_free[described.rack.value] -= described.gpus;
  free_ -= described.gpus;
  usable_ -= described.gpus;
}

void ClusterState::enter_service(NodeId node) {
  NodeRow& row = nodes_[node.value];
  const Node& described = cluster_->nodes[node.value];
  PoolRow& pool = pools_[described.pool.value];
  row.up = true;
  row.mask = all_devices(described.gpus);
  tell(node, all_devices(described.gpus));
  row.free = described.gpus;
  pool.by_free[static_cast<std::size_t>(row.free)].insert(node);
  pool.free += described.gpus;
  pool.free_milli += std::int64_t{1000} * described.gpus;
  pool.usable += described.gpus;
  pool.rack_free[described.rack.value] += described.gpus;
  free_ += described.gpus;
  usable_ += described.gpus;
}

}  // namespace berth
