// The short form of a cluster. A file is read in cluster_file.cpp; load_cluster() decides which of
// the two an argument is.

#include "model/cluster.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"

namespace berth {

std::int64_t Cluster::total_gpus() const noexcept {
  std::int64_t total = 0;
  for (const Node& node : nodes) total += node.gpus;
  return total;
}

std::int64_t Cluster::total_gpus(PoolId pool) const noexcept {
  std::int64_t total = 0;
  for (const Node& node : nodes) total += node.pool == pool ? node.gpus : 0;
  return total;
}

std::int32_t Cluster::largest_node() const noexcept {
  std::int32_t largest = 0;
  for (const Node& node : nodes) largest = std::max(largest, node.gpus);
  return largest;
}

namespace {

constexpr std::string_view kShortHelp = "write NODESxGPUS[:TYPE], as in 16x4 or 8x8:a100,16x4:v100";

std::optional<std::int32_t> whole_number(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

// Types are pools: groups of one type, written apart, are one pool.
PoolId pool_named(Cluster& cluster, std::string_view type) {
  std::string name(type);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i) {
    if (cluster.pools[i].name == name) return PoolId{i};
  }
  // An unknown type is no error in the short form: it becomes a device with nominal figures.
  DeviceType device = find_device(name).value_or(DeviceType{});
  device.name = name;
  cluster.pools.push_back(std::move(device));
  return PoolId{static_cast<std::uint32_t>(cluster.pools.size() - 1)};
}

// The same letters as in a cluster file, so that both forms name the same types.
bool is_type_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
}

// The column is that of the group in the argument, so that an error can point at it.
Result<void> add_group(Cluster& cluster, std::string_view group, std::size_t column) {
  const auto wrong = [&](std::string_view what) {
    return fail(fmt::format("--cluster:1:{}: {} in '{}' ({})", column, what, group, kShortHelp));
  };
  const auto colon = group.find(':');
  const std::string_view counts = group.substr(0, colon);
  const std::string_view type = colon == std::string_view::npos ? "gpu" : group.substr(colon + 1);
  const auto cross = counts.find('x');
  if (cross == std::string_view::npos) return wrong("no 'x' between nodes and GPUs");
  const auto nodes = whole_number(counts.substr(0, cross));
  const auto gpus = whole_number(counts.substr(cross + 1));
  if (!nodes || *nodes < 1 || *nodes > kMaxNodes) {
    return wrong(fmt::format("the number of nodes must be 1 to {}", kMaxNodes));
  }
  if (!gpus || *gpus < 1 || *gpus > kMaxGpusPerNode) {
    return wrong(fmt::format("GPUs per node must be 1 to {}", kMaxGpusPerNode));
  }
  if (!is_type_name(type)) return wrong("the device type is not a name");
  // Checked before any node is made, so that a typing error cannot take the memory.
  if (cluster.nodes.size() + static_cast<std::size_t>(*nodes) >
      static_cast<std::size_t>(kMaxNodes)) {
    return wrong(fmt::format("more than {} nodes in all", kMaxNodes));
  }
  const PoolId pool = pool_named(cluster, type);
  for (std::int32_t i = 0; i < *nodes; ++i) {
    Node node;
    node.name = fmt::format("n{}", cluster.nodes.size());
    node.pool = pool;
    node.gpus = *gpus;
    cluster.nodes.push_back(std::move(node));
  }
  return {};
}

}  // namespace

Result<Cluster> parse_cluster_short(std::string_view text) {
  Cluster cluster;
  cluster.name = std::string(text);
  cluster.racks = {"r0"};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    BERTH_TRY_VOID(add_group(cluster, text.substr(begin, end - begin), begin + 1));
    begin = end + 1;
  }
  return cluster;
}

Result<Cluster> load_cluster(const std::string& argument) {
  // A file that is called 16x4.yaml, or lies in a folder, is a file.
  const bool is_short =
      !argument.empty() && std::isdigit(static_cast<unsigned char>(argument[0])) != 0 &&
      argument.find('x') != std::string::npos && argument.find('/') == std::string::npos &&
      !argument.ends_with(".yaml") && !argument.ends_with(".yml");
  if (is_short) return parse_cluster_short(argument);
  auto text = read_file(argument);
  if (!text) return fail(fmt::format("{} (or {})", text.error().text(), kShortHelp));
  return parse_cluster_yaml(*text, argument);
}

}  // namespace berth
