#include "advise/room.h"

#include <algorithm>
#include <utility>

#include "base/split.h"

namespace berth::advise {

namespace {

std::int64_t count_of(const std::vector<slurm::GresCount>& all, std::string_view name,
                      const std::string& type) {
  std::int64_t count = 0;
  for (const slurm::GresCount& gres : all)
    if (gres.name == name && (type.empty() || gres.type == type)) count += gres.count;
  return count;
}

/// What is held of a type; Slurm may tell the sum alone.
std::int64_t held_of(const slurm::Node& node, const std::string& type) {
  std::int64_t held = 0;
  for (const slurm::GresCount& gres : node.gres_held)
    if (gres.name == "gpu" && (type.empty() || gres.type.empty() || gres.type == type))
      held += gres.count;
  return held;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// "a100&nvlink", "a100|h100": whether a node has what is asked. Counts and brackets are of whole
/// requests, not of nodes: there any of the names is enough.
bool has_features(const slurm::Node& node, const std::string& asked) {
  if (asked.empty() || asked == "(null)") return true;
  const bool is_list = asked.find_first_of("[(*") != std::string::npos;
  std::string plain;
  for (const char c : asked)
    if (c != '[' && c != ']' && c != '(' && c != ')') plain += c;
  const bool any = is_list || plain.find('|') != std::string::npos;
  std::ranges::replace(plain, '|', '&');
  std::size_t met = 0, wanted = 0;
  for (const std::string_view part : split(plain, '&')) {
    ++wanted;
    met += has(node.features, part.substr(0, part.find('*'))) ? 1U : 0U;
  }
  return any ? met > 0 : met == wanted;
}

std::int32_t divided_up(std::int64_t whole, std::int32_t parts) {
  return static_cast<std::int32_t>((whole + parts - 1) / std::max(1, parts));
}

NodeRoom room_on(const slurm::Node& node, const std::string& type, const PerNode& needs) {
  NodeRoom room{
      .node = &node,
      .gpus = gpus_of(node, type),
      .cpus_free = std::max(0, node.cpus - node.cpus_held),
      .memory_free_mib = std::max<std::int64_t>(0, node.memory_mib - node.memory_held_mib)};
  room.gpus_free = std::max(0, room.gpus - static_cast<std::int32_t>(held_of(node, type)));
  room.fits = room.gpus_free >= needs.gpus && room.cpus_free >= needs.cpus &&
              room.memory_free_mib >= needs.memory_mib;
  return room;
}

}  // namespace

bool counts_memory(const slurm::Config& config) {
  return config.value("SelectTypeParameters").find("MEMORY") != std::string::npos;
}

std::int32_t gpus_of(const slurm::Node& node, const std::string& type) noexcept {
  return static_cast<std::int32_t>(count_of(node.gres, "gpu", type));
}

bool may_use(const slurm::Job& job, const slurm::Node& node) {
  const auto wanted = names_in(job.partition);
  const bool is_there =
      node.partitions.empty() || std::ranges::any_of(wanted, [&](const std::string& name) {
        return has(node.partitions, name);
      });
  if (!is_there || has(job.excluded_nodes, node.name)) return false;
  // With fewer names than nodes the others are free to choose.
  const auto& required = job.required_nodes;
  const bool is_bound = !required.empty() && std::cmp_greater_equal(required.size(), job.min_nodes);
  if (is_bound && !has(required, node.name)) return false;
  return has_features(node, job.features);
}

PerNode needs_of(const slurm::Job& job, bool counts_memory) {
  PerNode needs;
  needs.nodes = std::max(1, job.min_nodes);
  const std::int64_t per_node = count_of(job.per_node, "gpu", {});
  needs.gpus =
      per_node > 0 ? static_cast<std::int32_t>(per_node) : divided_up(job.gpus(), needs.nodes);
  needs.cpus = divided_up(job.cpus, needs.nodes);
  if (counts_memory)
    needs.memory_mib = (job.memory_mib + needs.nodes - 1) / std::max(1, needs.nodes);
  return needs;
}

Room room_for(const slurm::Job& job, const Sight& sight) {
  Room room{.needs = needs_of(job, counts_memory(sight.config)), .gpus_needed = job.gpus()};
  const std::string type = job.gpu_type();
  for (const slurm::Node& node : sight.all_nodes()) {
    if (!may_use(job, node)) continue;
    if (room.needs.gpus > 0 && gpus_of(node, type) == 0) {
      if (node.is_usable()) room.other_types_free += room_on(node, {}, room.needs).gpus_free;
      continue;
    }
    room.gpus_in_all += gpus_of(node, type);
    if (!node.is_usable()) {
      room.out.push_back(&node);
      room.gpus_out += gpus_of(node, type);
      continue;
    }
    room.nodes.push_back(room_on(node, type, room.needs));
    room.gpus_free += room.nodes.back().gpus_free;
    room.fitting += room.nodes.back().fits ? 1 : 0;
  }
  return room;
}

}  // namespace berth::advise
