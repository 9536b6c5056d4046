// The YAML cluster file. Everything in it is checked against what docs/formats/cluster.md allows,
// and all faults are reported together, each with its place.
#include "model/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "model/device_rows.h"
#include "model/node_names.h"
#include "model/rack_numbering.h"
#include "model/yaml_fields.h"
#include "model/yaml_guard.h"

namespace berth {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20U;
constexpr std::string_view kExample =
    "begin with\n  groups:\n    - {count: 16, gpus: 4, type: v100}";
constexpr YamlKind kKind{.holds = "cluster", .example = kExample};

class ClusterReader {
 public:
  explicit ClusterReader(const std::string& file) : file_(file), yaml_(file), devices_(yaml_) {
    cluster_.name = std::filesystem::path(file).stem().string();
  }

  Result<Cluster> read(const YAML::Node& root) {
    static const std::array<std::string, 4> kKeys{"name", "devices", "links", "groups"};
    if (!root.IsMap())
      return fail(fmt::format("{}: a cluster file is a mapping ({})",
                              yaml_place(file_, root.Mark()), kExample));
    yaml_.check_keys(root, kKeys, "the file");
    if (const auto name = yaml_.text(root, "name")) cluster_.name = *name;
    devices_.read(yaml_.child(root, "devices"));
    read_links(yaml_.child(root, "links"));
    const YAML::Node groups = yaml_.child(root, "groups");
    if (!groups.IsDefined()) {
      yaml_.wrong(root.Mark(), fmt::format("no groups of nodes ({})", kExample));
    } else if (!groups.IsSequence() || groups.size() == 0) {
      yaml_.wrong(groups.Mark(),
                  "groups must be a list with one entry per kind of node (start each with '- ')");
    } else {
      // Two passes: a rack that is numbered must not take a name that a later group gives.
      for (const YAML::Node& group : groups) reserve_names(group);
      for (const YAML::Node& group : groups) read_group(group);
    }
    racks_.finish(cluster_);
    BERTH_TRY_VOID(yaml_.verdict());
    return std::move(cluster_);
  }

 private:
  void read_links(const YAML::Node& node) {
    static const std::array<std::string, 10> kKeys{"nvlink",          "pcie",
                                                   "socket",          "rack",
                                                   "cross_rack",      "nvlink_latency_us",
                                                   "pcie_latency_us", "socket_latency_us",
                                                   "rack_latency_us", "cross_rack_latency_us"};
    if (!node.IsDefined()) return;
    if (!node.IsMap())
      return yaml_.wrong(
          node.Mark(), "links must be a mapping, as in {nvlink: 130, rack: 12.5} in GB per second");
    yaml_.check_keys(node, kKeys, "links");
    Links& links = cluster_.links;
    const std::array<double*, 10> targets{&links.nvlink,       &links.pcie,
                                          &links.socket,       &links.rack,
                                          &links.cross_rack,   &links.nvlink_latency,
                                          &links.pcie_latency, &links.socket_latency,
                                          &links.rack_latency, &links.cross_rack_latency};
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      const bool is_latency = i >= 5;
      const NumberRange range = is_latency ? NumberRange{0, 1e6} : NumberRange{0.001, 100'000};
      if (const auto value = yaml_.number(node, kKeys[i], range))
        // Inside the program: seconds and bytes per second.
        *targets[i] = is_latency ? *value / 1e6 : *value * 1e9;
    }
  }

  /// What the file names is known before anything is numbered.
  void reserve_names(const YAML::Node& group) {
    if (!group.IsMap()) return;
    if (const YAML::Node rack = yaml_.child(group, "rack"); rack.IsScalar())
      racks_.reserve_rack(rack.Scalar());
    if (const YAML::Node zone = yaml_.child(group, "zone"); zone.IsScalar())
      racks_.reserve_zone(zone.Scalar());
  }

  // Numbers of a prefix go on over groups, so that two groups without names do not collide.
  std::vector<std::string> names_of(const YAML::Node& group) {
    const YAML::Node nodes = yaml_.child(group, "nodes");
    const YAML::Node count = yaml_.child(group, "count");
    const std::string prefix = yaml_.name(group, "prefix").value_or("n");
    if (nodes.IsDefined() == count.IsDefined()) {
      yaml_.wrong(
          group.Mark(),
          "a group says either nodes (a name range such as \"n[001-016]\") or count, not both or "
          "neither");
      return {};
    }
    std::vector<std::string> names;
    if (count.IsDefined()) {
      const std::int32_t wanted = yaml_.whole(group, "count", {1, kMaxNodes}).value_or(0);
      for (std::int32_t i = 0; i < wanted; ++i)
        names.push_back(fmt::format("{}{}", prefix, next_number_[prefix]++));
      return names;
    }
    const auto add = [&](const YAML::Node& pattern) {
      const auto expanded = pattern.IsScalar() ? expand_node_names(pattern.Scalar()) : std::nullopt;
      if (!expanded || names.size() + expanded->size() > static_cast<std::size_t>(kMaxNodes)) {
        return yaml_.wrong(
            pattern.Mark(),
            fmt::format("'{}' is no node name or range of at most {} nodes (as in n7, "
                        "n[001-016] or n[1-4,9])",
                        pattern.IsScalar() ? shown(pattern.Scalar()) : "?", kMaxNodes));
      }
      names.insert(names.end(), expanded->begin(), expanded->end());
    };
    if (yaml_.child(group, "prefix").IsDefined())
      yaml_.wrong(yaml_.child(group, "prefix").Mark(), "prefix goes with count, not with nodes");
    if (!nodes.IsSequence())
      add(nodes);
    else
      for (const YAML::Node& pattern : nodes) add(pattern);
    return names;
  }

  // A server that draws less when busy than when idle is a typing error.
  void read_power(const YAML::Node& group, Node& node) {
    static const std::array<std::string, 2> kKeys{"idle_watts", "busy_watts"};
    const YAML::Node power = yaml_.child(group, "power");
    if (!power.IsDefined()) return;
    if (!power.IsMap())
      return yaml_.wrong(power.Mark(),
                         "power must be a mapping, as in {idle_watts: 300, busy_watts: 700}");
    yaml_.check_keys(power, kKeys, "power");
    node.idle_watts = yaml_.number(power, "idle_watts", {0, 1'000'000}).value_or(0);
    node.busy_watts = yaml_.number(power, "busy_watts", {0, 1'000'000}).value_or(node.idle_watts);
    if (node.busy_watts < node.idle_watts)
      yaml_.wrong(power.Mark(), "busy_watts must be at least idle_watts");
  }

  Node read_node(const YAML::Node& group) {
    Node node;
    if (!yaml_.child(group, "gpus").IsDefined())
      yaml_.wrong(group.Mark(), "a group needs gpus, the number of GPUs in each of its nodes");
    node.gpus = yaml_.whole(group, "gpus", {1, kMaxGpusPerNode}).value_or(1);
    node.pool = devices_.pool_of(group, cluster_.pools);
    node.cpus_milli =
        std::llround(yaml_.number(group, "cpus", {0.001, 100'000}).value_or(0) * 1000);
    node.memory_mib =
        std::llround(yaml_.number(group, "memory_gb", {0.001, 1'000'000}).value_or(0) * 1024);
    node.shape.sockets = yaml_.whole(group, "sockets", {1, 64}).value_or(1);
    node.shape.switches = yaml_.whole(group, "switches", {0, 64}).value_or(0);
    node.shape.nvlink_island =
        yaml_.whole(group, "nvlink_island", {0, kMaxGpusPerNode}).value_or(0);
    if (node.shape.nvlink_island > node.gpus) {
      yaml_.wrong(yaml_.child(group, "nvlink_island").Mark(),
                  fmt::format("nvlink_island is {} but a node has {} GPUs",
                              node.shape.nvlink_island, node.gpus));
    }
    read_nvlink(yaml_.child(group, "nvlink"), node);
    read_power(group, node);
    return node;
  }

  /// A row per device with the GB per second to each other one.
  void read_nvlink(const YAML::Node& rows, Node& node) {
    if (!rows.IsDefined()) return;
    const auto size = static_cast<std::size_t>(node.gpus);
    const auto is_row = [&](const YAML::Node& row) {
      return row.IsSequence() && row.size() == size;
    };
    if (!is_row(rows) || !std::all_of(rows.begin(), rows.end(), is_row)) {
      return yaml_.wrong(rows.Mark(), fmt::format("nvlink must have {0} rows of {0} numbers, a row "
                                                  "and a column per device",
                                                  size));
    }
    NvlinkMatrix matrix{node.gpus, {}};
    for (const YAML::Node& row : rows) {
      for (const YAML::Node& cell : row) {
        const auto gigabytes = yaml_.number_at(cell, "a link of nvlink", {0, 100'000});
        matrix.bandwidth.push_back(gigabytes.value_or(0) * 1e9);
      }
    }
    for (std::int32_t a = 0; a < node.gpus; ++a) {
      for (std::int32_t b = 0; b < a; ++b) {
        // Links go both ways; a difference is a slip of the pen, not a fast and a slow direction.
        if (matrix.at(a, b) == matrix.at(b, a)) continue;
        return yaml_.wrong(
            rows.Mark(),
            fmt::format("nvlink from device {} to {} differs from the way back", b, a));
      }
    }
    node.nvlink = static_cast<std::uint32_t>(cluster_.nvlinks.size());
    cluster_.nvlinks.push_back(std::move(matrix));
  }

  void read_group(const YAML::Node& group) {
    static const std::array<std::string, 17> kKeys{
        "nodes",   "count",          "prefix",        "gpus",
        "type",    "cpus",           "memory_gb",     "device_memory_gb",
        "sockets", "switches",       "nvlink_island", "nvlink",
        "rack",    "nodes_per_rack", "zone",          "racks_per_zone",
        "power"};
    if (!group.IsMap())
      return yaml_.wrong(group.Mark(),
                         "a group is a mapping, as in {count: 16, gpus: 4, type: v100}");
    yaml_.check_keys(group, kKeys, "a group");
    const std::vector<std::string> names = names_of(group);
    Node node = read_node(group);
    const Places places = read_places(group);
    if (cluster_.nodes.size() + names.size() > static_cast<std::size_t>(kMaxNodes)) {
      return yaml_.wrong(group.Mark(), fmt::format("more than {} nodes in all", kMaxNodes));
    }
    // Nodes of a group differ only in name and rack.
    for (std::size_t i = 0; i < names.size(); ++i) {
      place(places, i, node);
      node.name = names[i];
      if (!node_names_.insert(node.name).second) {
        yaml_.wrong(group.Mark(),
                    fmt::format("two nodes are called '{}' (names must differ)", shown(node.name)));
      }
      cluster_.nodes.push_back(node);
    }
  }

  /// Where the nodes of a group stand.
  struct Places {
    std::optional<RackId> rack;
    std::optional<std::int32_t> nodes_per_rack;
    std::optional<ZoneId> zone;
    std::optional<std::int32_t> racks_per_zone;
  };

  // Either one place for all, or a rule that fills racks and zones one after the other.
  Places read_places(const YAML::Node& group) {
    const auto has = [&](std::string_view key) { return yaml_.child(group, key).IsDefined(); };
    Places places;
    if (const auto zone = yaml_.name(group, "zone")) places.zone = racks_.zone_named(*zone);
    if (const auto rack = yaml_.name(group, "rack")) places.rack = racks_.rack_named(*rack);
    places.nodes_per_rack = yaml_.whole(group, "nodes_per_rack", {1, kMaxNodes});
    places.racks_per_zone = yaml_.whole(group, "racks_per_zone", {1, kMaxNodes});
    if (has("rack") && has("nodes_per_rack")) {
      yaml_.wrong(yaml_.child(group, "rack").Mark(),
                  "a group says rack (one for all its nodes) or nodes_per_rack, not both");
    }
    if (has("racks_per_zone") && (has("zone") || !has("nodes_per_rack"))) {
      yaml_.wrong(yaml_.child(group, "racks_per_zone").Mark(),
                  "racks_per_zone goes with nodes_per_rack and without zone");
    }
    if (places.rack && places.zone && !racks_.put(*places.rack, *places.zone)) {
      yaml_.wrong(
          yaml_.child(group, "zone").Mark(),
          fmt::format("rack '{}' stands in zone '{}' already", racks_.rack_name(*places.rack),
                      racks_.zone_name(*racks_.zone_of(*places.rack))));
    }
    return places;
  }

  /// The rack (and its zone) of node number i of a group; `node` still has the one before.
  void place(const Places& places, std::size_t i, Node& node) {
    if (places.rack) {
      node.rack = *places.rack;
      return;
    }
    if (!places.nodes_per_rack) {
      node.rack = racks_.common_rack(places.zone);
    } else if (const auto per_rack = static_cast<std::size_t>(*places.nodes_per_rack);
               i % per_rack == 0) {
      node.rack = racks_.numbered_rack();
      const auto per_zone = static_cast<std::size_t>(places.racks_per_zone.value_or(0));
      if (per_zone > 0 && i / per_rack % per_zone == 0) filling_zone_ = racks_.numbered_zone();
      if (per_zone > 0) static_cast<void>(racks_.put(node.rack, filling_zone_));
    }
    if (places.zone) static_cast<void>(racks_.put(node.rack, *places.zone));
  }

  const std::string& file_;
  YamlFields yaml_;
  Cluster cluster_;
  DeviceRows devices_;
  std::unordered_set<std::string> node_names_;
  std::unordered_map<std::string, std::int32_t> next_number_;
  RackNumbering racks_;
  ZoneId filling_zone_;  // with racks_per_zone
};

}  // namespace

Result<Cluster> parse_cluster_yaml(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes)
    return fail(
        fmt::format("{}:1:1: larger than {} bytes (is this a cluster file?)", name, kMaxFileBytes));
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n') + 1;
    return fail(
        fmt::format("{}:{}:1: not a text file (a cluster file is YAML in UTF-8)", name, line));
  }
  try {  // yaml-cpp throws; nothing of it leaves this function
    const std::string owned(text);
    BERTH_TRY_VOID(check_yaml_shape(owned, name, kKind));
    return ClusterReader(name).read(YAML::Load(owned));
  } catch (const YAML::Exception& problem) {
    return fail(fmt::format("{}: {} (YAML: keys are 'key: value', lists begin with '- ', no tabs)",
                            yaml_place(name, problem.mark), problem.msg));
  } catch (const std::exception& problem) {
    return fail(fmt::format("{}:1:1: cannot read: {}", name, problem.what()));
  }
}

}  // namespace berth
