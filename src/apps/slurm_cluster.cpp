#include "apps/slurm_cluster.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/cluster.h"
#include "slurm/hostlist.h"

namespace berth {

namespace {

constexpr std::int64_t kUnknownMemoryGb = 16;  // of a type that neither Slurm nor we know

/// Valid in YAML as it is in JSON; node names are plain, switches may be called anything.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? '_' : c;
  }
  return result + '"';
}

/// A device type may be called so in a cluster file.
std::string type_name(std::string_view type) {
  std::string name(type);
  for (char& c : name) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!is_plain) c = '_';
  }
  return name;
}

struct Gpus {
  std::string type;
  std::int64_t count = 0;
  std::int64_t of_other_types = 0;
  std::int64_t shards = 0;
};

/// The type with the most devices counts: a node of the file has one.
Gpus gpus_of(const slurm::Node& node) {
  Gpus gpus;
  std::int64_t all = 0;
  for (const slurm::GresCount& gres : node.gres) {
    if (gres.name == "shard") gpus.shards += gres.count;
    if (gres.name != "gpu") continue;
    all += gres.count;
    if (gres.count <= gpus.count) continue;
    gpus.count = gres.count;
    gpus.type = gres.type;
  }
  gpus.of_other_types = all - gpus.count;
  return gpus;
}

/// Sites name the memory of a GPU in a feature: "gpu_mem:80GB", "gpumem80", "vram-24g".
std::optional<std::int64_t> memory_by_features(const slurm::Node& node) {
  for (const std::string& feature : node.features) {
    std::string word;
    for (const char c : feature) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) != 0) word += static_cast<char>(std::tolower(byte));
    }
    for (const std::string_view head : {"gpumem", "gpuram", "vram"}) {
      if (!word.starts_with(head)) continue;
      const std::size_t first = head.size();
      const std::size_t last = std::min(word.find_first_not_of("0123456789", first), word.size());
      const std::string_view unit = std::string_view(word).substr(last);
      if (last == first || last - first > 4 || !(unit.empty() || unit == "g" || unit == "gb"))
        continue;
      return std::stoll(word.substr(first, last - first));
    }
  }
  return std::nullopt;
}

/// Where a node hangs: the lowest switch that has it, and the one above.
struct Place {
  std::string rack, zone;
  friend bool operator==(const Place&, const Place&) = default;
};

std::map<std::string, Place> places_of(std::span<const slurm::Switch> switches) {
  std::map<std::string, Place> places;
  std::map<std::string, std::string> above;  // of a switch
  std::set<std::string> zones;
  for (const slurm::Switch& one : switches) {
    if (one.level != 1) continue;
    zones.insert(one.name);
    for (const std::string& below : one.switches) above.emplace(below, one.name);
  }
  for (const slurm::Switch& one : switches) {
    if (one.level != 0) continue;
    // A single switch above all racks tells nothing.
    const std::string zone = zones.size() > 1 && above.contains(one.name) ? above[one.name] : "";
    for (const std::string& node : one.nodes) places.emplace(node, Place{one.name, zone});
  }
  return places;
}

struct Group {
  std::string type;  // as Slurm writes it
  std::int64_t gpus = 0;
  std::int64_t cpus = 0, memory_mib = 0;
  std::int64_t sockets = 1;
  std::optional<std::int64_t> device_memory;
  Place place;
  std::vector<std::string> nodes{};

  [[nodiscard]] bool is_like(const Group& other) const {
    const auto key = [](const Group& g) {
      return std::tie(g.type, g.gpus, g.cpus, g.memory_mib, g.sockets, g.device_memory, g.place);
    };
    return key(*this) == key(other);
  }
};

/// "n[1-4]", "x9": our file takes a list of what Slurm joins by commas outside of brackets.
std::string node_list(const std::vector<std::string>& names) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : slurm::compress_hostlist(names)) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  std::vector<std::string> words;
  for (const std::string& part : parts) words.push_back(quoted(part));
  return words.size() == 1 ? words.front() : fmt::format("[{}]", fmt::join(words, ", "));
}

class ClusterWriter {
 public:
  explicit ClusterWriter(const Naming& naming) : naming_(naming) {}

  void add(const slurm::Node& node, const Place& place) {
    const Gpus gpus = gpus_of(node);
    if (gpus.count == 0) {
      without_gpu_.push_back(node.name);
      return;
    }
    if (gpus.of_other_types > 0) mixed_.push_back(node.name);
    if (gpus.count > kMaxGpusPerNode) large_.push_back(node.name);
    if (!node.is_usable()) unusable_.push_back(node.name);
    if (gpus.shards > 0)
      result_.shards_per_gpu = std::max<std::int64_t>(1, gpus.shards / gpus.count);
    Group group{.type = gpus.type,
                .gpus = std::min<std::int64_t>(gpus.count, kMaxGpusPerNode),
                .cpus = node.cpus,
                .memory_mib = node.memory_mib,
                .sockets = std::clamp<std::int64_t>(node.sockets, 1, 64),
                .device_memory = memory_by_features(node),
                .place = place};
    auto found = std::ranges::find_if(groups_, [&](const Group& g) { return g.is_like(group); });
    if (found == groups_.end()) found = groups_.insert(groups_.end(), std::move(group));
    found->nodes.push_back(node.name);
    result_.nodes.insert(node.name);
    result_.gpus += found->gpus;
    if (!gpus.type.empty()) result_.types.insert(gpus.type);
  }

  [[nodiscard]] Result<SlurmCluster> finish(const std::string& name, bool has_switches) && {
    if (groups_.empty()) return fail("no node of this Slurm has a GPU: nothing to schedule here");
    settle_memory();
    std::string& yaml = result_.yaml;
    yaml = fmt::format("name: {}\n", quoted(name));
    write_devices(yaml);
    yaml += "groups:\n";
    for (const Group& group : groups_) write_group(yaml, group);
    result_.groups = groups_.size();
    tell(has_switches);
    return std::move(result_);
  }

 private:
  // The file takes one figure for each type: where features differ, none is right.
  void settle_memory() {
    std::map<std::string, std::set<std::int64_t>> figures;
    for (const Group& group : groups_) {
      if (group.device_memory) figures[group.type].insert(*group.device_memory);
    }
    for (Group& group : groups_) {
      if (figures[group.type].size() != 1) group.device_memory.reset();
    }
  }

  void write_devices(std::string& yaml) {
    std::string rows;
    for (const std::string& type : result_.types) {
      if (find_device(type_name(type))) continue;
      std::optional<std::int64_t> memory;
      for (const Group& group : groups_) {
        if (group.type == type && group.device_memory) memory = group.device_memory;
      }
      rows += fmt::format("  - {{name: {}, memory_gb: {}}}{}\n", type_name(type),
                          memory.value_or(kUnknownMemoryGb),
                          memory ? "" : "  # memory is not known: set it; speed and power too");
      result_.notes.push_back(fmt::format(
          "GPU type {}: not in Berth's catalogue; its speed, power{} in cluster.yaml are nominal",
          type, memory ? "" : " and memory"));
    }
    if (!rows.empty()) yaml += "devices:\n" + rows;
  }

  void write_group(std::string& yaml, const Group& group) {
    std::vector<std::string> names;
    for (const std::string& node : group.nodes) names.push_back(naming_("node", node));
    yaml += fmt::format("  - nodes: {}\n    gpus: {}\n", node_list(names), group.gpus);
    if (!group.type.empty()) yaml += fmt::format("    type: {}\n", type_name(group.type));
    if (group.cpus > 0) yaml += fmt::format("    cpus: {}\n", group.cpus);
    if (group.memory_mib > 0)
      yaml += fmt::format("    memory_gb: {}\n", static_cast<double>(group.memory_mib) / 1024);
    if (group.device_memory)
      yaml += fmt::format("    device_memory_gb: {}\n", *group.device_memory);
    if (group.sockets > 1) yaml += fmt::format("    sockets: {}\n", group.sockets);
    if (!group.place.rack.empty())
      yaml += fmt::format("    rack: {}\n", quoted(naming_("rack", group.place.rack)));
    if (!group.place.zone.empty())
      yaml += fmt::format("    zone: {}\n", quoted(naming_("zone", group.place.zone)));
  }

  void tell(bool has_switches) {
    const auto nodes = [this](const std::vector<std::string>& names) {
      std::vector<std::string> shown;
      for (const std::string& name : names) shown.push_back(naming_("node", name));
      return fmt::format("{} nodes ({})", names.size(), slurm::compress_hostlist(shown));
    };
    auto& notes = result_.notes;
    if (!without_gpu_.empty())
      notes.push_back(fmt::format(
          "{} have no GPU: a cluster file has only nodes with GPUs, and jobs that ran on these "
          "alone are not in the trace",
          nodes(without_gpu_)));
    if (!mixed_.empty())
      notes.push_back(fmt::format(
          "{} have GPUs of several types: only those of the most frequent type are in the file",
          nodes(mixed_)));
    if (!large_.empty())
      notes.push_back(fmt::format("{} have more than {} GPUs: the file has {}", nodes(large_),
                                  kMaxGpusPerNode, kMaxGpusPerNode));
    if (!unusable_.empty())
      notes.push_back(fmt::format(
          "{} were down, drained or reserved at the capture: they are in the file all the same",
          nodes(unusable_)));
    if (!has_switches)
      notes.emplace_back(
          "Slurm knows no topology: all nodes count as one rack (add `rack:` where you know "
          "better)");
    notes.emplace_back(
        "Slurm does not tell NVLink islands, PCIe switches, links, prices and power: add them to "
        "cluster.yaml if they matter to you");
  }

  const Naming& naming_;
  SlurmCluster result_;
  std::vector<Group> groups_;
  std::vector<std::string> without_gpu_, mixed_, large_, unusable_;
};

}  // namespace

Result<SlurmCluster> slurm_cluster(const std::string& name, std::span<const slurm::Node> nodes,
                                   std::span<const slurm::Switch> switches, const Naming& naming) {
  const auto places = places_of(switches);
  ClusterWriter writer(naming);
  for (const slurm::Node& node : nodes) {
    const auto found = places.find(node.name);
    writer.add(node, found == places.end() ? Place{} : found->second);
  }
  return std::move(writer).finish(name, !switches.empty());
}

}  // namespace berth
