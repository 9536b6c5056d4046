#include "exec/discover.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "exec/nvml.h"

namespace berth {

namespace {

struct HostFacts {
  std::string name;
  std::int32_t sockets = 1;
  std::int64_t cores = 0;
  std::int64_t memory_mib = 0;
};

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "local";
  return name.data();
}

Result<HostFacts> ask_hwloc(const DiscoverOptions& options) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return fail("hwloc does not start (is memory left?)");
  const HwlocTopology topology(raw);
  // A description that hwloc cannot read would leave it with the real machine: every code counts.
  if (!options.synthetic.empty() &&
      hwloc_topology_set_synthetic(raw, options.synthetic.c_str()) != 0)
    return fail(fmt::format("'{}' is no hwloc description (as in \"pack:2 core:8 pu:2\")",
                            options.synthetic));
  if (hwloc_topology_load(raw) != 0) return fail("hwloc cannot read this machine (try lstopo)");
  HostFacts facts;
  facts.name = options.host.empty() ? host_name() : options.host;
  facts.sockets = std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE));
  facts.cores = std::max(0, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE));
  if (facts.cores == 0) facts.cores = std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PU));
  facts.memory_mib = static_cast<std::int64_t>(hwloc_get_root_obj(raw)->total_memory >> 20U);
  return facts;
}

/// Runs of neighbouring devices that are at most this far apart: their number if they are all of
/// one size, else nothing.
std::optional<std::int32_t> equal_runs(const GpuReport& report, const std::vector<std::size_t>& ids,
                                       PciDistance most) {
  const auto near = [&](std::size_t a, std::size_t b) {
    return report.distances[ids[a] * report.gpus.size() + ids[b]] <= most;
  };
  std::vector<std::size_t> sizes{1};
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (near(i - 1, i))
      ++sizes.back();
    else
      sizes.push_back(1);
  }
  if (std::ranges::any_of(sizes, [&](std::size_t size) { return size != sizes.front(); }))
    return std::nullopt;
  return static_cast<std::int32_t>(sizes.size());
}

class Assembler {
 public:
  Assembler(const HostFacts& host, const std::optional<GpuReport>& report)
      : host_(host), report_(report) {
    cluster_.name = host.name;
    cluster_.racks = {"r0"};
  }

  Cluster assemble() {
    if (!report_ || report_->gpus.empty()) {
      cluster_.pools.push_back(*find_device("gpu"));
      add_node(PoolId{0}, {}, host_.name);
      return std::move(cluster_);
    }
    std::vector<std::vector<std::size_t>> by_pool;
    for (std::size_t i = 0; i < report_->gpus.size(); ++i) {
      const PoolId pool = pool_of(report_->gpus[i]);
      if (pool.value >= by_pool.size()) by_pool.resize(pool.value + 1);
      by_pool[pool.value].push_back(i);
    }
    for (std::uint32_t pool = 0; pool < by_pool.size(); ++pool) {
      const std::string& type = cluster_.pools[pool].name;
      add_node(PoolId{pool}, by_pool[pool],
               by_pool.size() == 1 ? host_.name : fmt::format("{}-{}", host_.name, type));
    }
    return std::move(cluster_);
  }

 private:
  PoolId pool_of(const GpuFacts& gpu) {
    DeviceType type = device_type_for(gpu.name, gpu.memory_mib);
    if (gpu.memory_mib > 0) type.memory_mib = gpu.memory_mib;
    for (std::uint32_t i = 0; i < cluster_.pools.size(); ++i) {
      if (cluster_.pools[i].name == type.name) return PoolId{i};
    }
    if (gpu.limit_watts > 0) type.busy_watts = std::max(type.idle_watts, 0.9 * gpu.limit_watts);
    cluster_.pools.push_back(std::move(type));
    return PoolId{static_cast<std::uint32_t>(cluster_.pools.size() - 1)};
  }

  void add_node(PoolId pool, const std::vector<std::size_t>& ids, std::string name) {
    Node node;
    node.name = std::move(name);
    node.pool = pool;
    node.gpus = static_cast<std::int32_t>(ids.size());
    const auto all = static_cast<std::int64_t>(report_ ? report_->gpus.size() : 0);
    const auto share = [&](std::int64_t of) { return all == 0 ? of : of * node.gpus / all; };
    node.cpus_milli = share(host_.cores * 1000);
    node.memory_mib = share(host_.memory_mib);
    node.shape.sockets = host_.sockets;
    if (!ids.empty()) describe_inside(node, ids);
    cluster_.nodes.push_back(std::move(node));
  }

  void describe_inside(Node& node, const std::vector<std::size_t>& ids) {
    node.shape.sockets = equal_runs(*report_, ids, PciDistance::Socket).value_or(1);
    const std::int32_t switches = equal_runs(*report_, ids, PciDistance::Switch).value_or(0);
    node.shape.switches = switches < node.gpus ? switches : 0;  // one device each says nothing
    if (report_->has_nvswitch) {
      node.shape.nvlink_island = node.gpus;
      return;
    }
    NvlinkMatrix matrix{node.gpus, {}};
    for (const std::size_t a : ids) {
      for (const std::size_t b : ids)
        matrix.bandwidth.push_back(
            report_->nvlink.at(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)));
    }
    if (std::ranges::all_of(matrix.bandwidth, [](double link) { return link <= 0; })) return;
    node.nvlink = static_cast<std::uint32_t>(cluster_.nvlinks.size());
    cluster_.nvlinks.push_back(std::move(matrix));
  }

  const HostFacts& host_;
  const std::optional<GpuReport>& report_;
  Cluster cluster_;
};

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words{""};
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

DeviceType device_type_for(const std::string& name, std::int64_t memory_mib) {
  const std::vector<std::string> words = words_of(name);
  std::string best;  // the longest catalogue name among the words and pairs of neighbours
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string& word : {words[i], i + 1 < words.size() ? words[i] + words[i + 1] : ""})
      if (word.size() > best.size() && find_device(word)) best = word;
  }
  if (best.empty() || best == "gpu") {
    DeviceType device;
    for (const std::string& word : words) device.name += (device.name.empty() ? "" : "-") + word;
    if (device.name.empty()) device.name = "gpu";
    device.memory_mib = memory_mib;
    return device;
  }
  const DeviceType* nearest = nullptr;  // variants of one model differ in memory
  for (const DeviceType& row : built_in_devices()) {
    if (!row.name.starts_with(best)) continue;
    const auto distance = [&](const DeviceType& device) {
      return std::abs(device.memory_mib - memory_mib);
    };
    if (nearest == nullptr || distance(row) < distance(*nearest)) nearest = &row;
  }
  return *nearest;
}

Result<Cluster> discover_cluster(const DiscoverOptions& options) {
  BERTH_TRY(const HostFacts host, ask_hwloc(options));
  BERTH_TRY(const std::optional<GpuReport> gpus, ask_nvml(options.nvml_library));
  return Assembler(host, gpus).assemble();
}

}  // namespace berth
