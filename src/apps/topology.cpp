#include "apps/topology.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>

#include "base/json_writer.h"
#include "base/text_table.h"
#include "exec/discover.h"
#include "model/topology.h"

namespace berth {

namespace {

/// A vertex as it is shown, with equal neighbours folded into it.
struct Branch {
  VertexType type = VertexType::Cluster;
  std::string first;    // its name; of a folded one the first
  std::string last;     // … and the last
  std::string details;  // what it has beside its children
  Level level = Level::Device;
  std::size_t times = 1;
  std::vector<Branch> children;

  [[nodiscard]] bool equals(const Branch& other) const {
    return type == other.type && details == other.details && level == other.level &&
           std::ranges::equal(children, other.children, [](const Branch& a, const Branch& b) {
             return a.times == b.times && a.equals(b);
           });
  }
};

void add_child(Branch& parent, Branch child) {
  if (!parent.children.empty() && parent.children.back().equals(child)) {
    ++parent.children.back().times;
    parent.children.back().last = std::move(child.last);
    return;
  }
  parent.children.push_back(std::move(child));
}

class TreeOfBranches {
 public:
  explicit TreeOfBranches(const Cluster& cluster) : cluster_(cluster), topology_(cluster) {}

  [[nodiscard]] Branch root() const { return upper(Topology::root()); }

 private:
  [[nodiscard]] Branch upper(VertexId id) const {
    const Vertex& vertex = topology_[id];
    if (vertex.type == VertexType::Server) return server(NodeId{vertex.id});
    const std::string name = vertex.type == VertexType::Cluster ? cluster_.name
                             : vertex.type == VertexType::Zone  ? cluster_.zones[vertex.id]
                                                                : cluster_.racks[vertex.id];
    Branch branch{vertex.type, name, name, "", vertex.level, 1, {}};
    for (const VertexId child : topology_.children(id)) add_child(branch, upper(child));
    return branch;
  }

  [[nodiscard]] Branch server(NodeId id) const {
    const Node& node = cluster_.nodes[id.value];
    const std::string& type = cluster_.pools[node.pool.value].name;
    Branch branch = inner(topology_.inside(id), 0, type);
    branch.first = branch.last = node.name;
    branch.details = node.gpus == 0 ? "no devices" : fmt::format("{} {}", node.gpus, type);
    if (node.cpus_milli > 0)
      branch.details += fmt::format(", {:g} cores", static_cast<double>(node.cpus_milli) / 1000);
    if (node.memory_mib > 0)
      branch.details += fmt::format(", {:.4g} GB", static_cast<double>(node.memory_mib) / 1024);
    if (node.nvlink) branch.details += ", NVLink mesh";
    return branch;
  }

  [[nodiscard]] static Branch inner(const ServerTree& tree, std::uint32_t at,
                                    const std::string& device) {
    const InnerVertex& vertex = tree.vertices[at];
    Branch branch{vertex.type, "", "", "", vertex.level, 1, {}};
    if (vertex.type == VertexType::Device) branch.details = device;
    for (std::uint32_t i = 0; i < vertex.child_count; ++i)
      add_child(branch, inner(tree, vertex.first_child + i, device));
    return branch;
  }

  const Cluster& cluster_;
  Topology topology_;
};

bool connects(const Branch& branch) {
  return branch.children.size() > 1 ||
         (branch.children.size() == 1 && branch.children[0].times > 1);
}

std::string label_of(const Branch& branch, const Links& links) {
  const std::string_view type = branch.type == VertexType::Server ? "node" : to_string(branch.type);
  std::string text = branch.type == VertexType::Device ? branch.details : std::string(type);
  if (!branch.first.empty()) text += " " + branch.first;
  if (branch.last != branch.first) text += "…" + branch.last;
  if (branch.times > 1) text += fmt::format(" x{}", branch.times);
  if (branch.type != VertexType::Device && !branch.details.empty()) text += ": " + branch.details;
  if (connects(branch)) {
    const Link link = links.at(branch.level);
    text += fmt::format("  [{} {:g} GB/s, {:g} us]", to_string(branch.level), link.bandwidth / 1e9,
                        link.latency * 1e6);
  }
  return text;
}

void draw(const Branch& branch, const Links& links, const std::string& indent, std::string& out) {
  for (std::size_t i = 0; i < branch.children.size(); ++i) {
    const bool is_last = i + 1 == branch.children.size();
    out += indent + (is_last ? "└─ " : "├─ ") + label_of(branch.children[i], links) + "\n";
    draw(branch.children[i], links, indent + (is_last ? "   " : "│  "), out);
  }
}

void write_branch(const Branch& branch, const Links& links, JsonWriter& json) {
  json.begin_object();
  json.field("type", to_string(branch.type));
  if (!branch.first.empty()) json.field("name", branch.first);
  if (branch.last != branch.first) json.field("last", branch.last);
  json.field("times", branch.times);
  if (branch.type == VertexType::Device) json.field("device", branch.details);
  if (connects(branch)) {
    const Link link = links.at(branch.level);
    json.field("level", to_string(branch.level));
    json.field("bytes_per_second", link.bandwidth).field("latency_seconds", link.latency);
  }
  if (!branch.children.empty()) {
    json.key("children").begin_array();
    for (const Branch& child : branch.children) write_branch(child, links, json);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

std::string draw_topology(const Cluster& cluster) {
  const Branch root = TreeOfBranches(cluster).root();
  std::string out = label_of(root, cluster.links) + "\n";
  draw(root, cluster.links, "", out);
  TextTable table({{"device", Align::Left},
                   {"kind", Align::Left},
                   {"devices"},
                   {"GB each"},
                   {"speed"},
                   {"slots"}});
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i) {
    const DeviceType& type = cluster.pools[i];
    table.add_row({type.name, std::string(to_string(type.kind)),
                   fmt::format("{}", cluster.total_gpus(PoolId{i})),
                   fmt::format("{:.4g}", static_cast<double>(type.memory_mib) / 1024),
                   fmt::format("{:g}", type.speed), fmt::format("{}", type.slots)});
  }
  return out + "\n" + table.str();
}

std::string topology_json(const Cluster& cluster) {
  JsonWriter json;
  json.begin_object().field("name", cluster.name).field("nodes", cluster.nodes.size());
  json.field("racks", cluster.racks.size()).field("zones", cluster.zones.size());
  json.key("devices").begin_array();
  for (std::uint32_t i = 0; i < cluster.pools.size(); ++i) {
    const DeviceType& type = cluster.pools[i];
    json.begin_object().field("type", type.name).field("kind", to_string(type.kind));
    json.field("count", cluster.total_gpus(PoolId{i})).field("memory_mib", type.memory_mib);
    json.field("speed", type.speed).field("slots", type.slots).end_object();
  }
  json.end_array().key("tree");
  write_branch(TreeOfBranches(cluster).root(), cluster.links, json);
  json.end_object();
  return json.str() + "\n";
}

Exit execute(const TopologyOptions& options) {
  const auto cluster =
      options.cluster == "local" ? discover_cluster() : load_cluster(options.cluster);
  if (!cluster) {
    return complain(options.cluster == "local" ? Exit::Failure : Exit::Misuse, cluster.error());
  }
  return write_stdout(options.json ? topology_json(*cluster) : draw_topology(*cluster));
}

}  // namespace berth
