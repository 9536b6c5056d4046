#include "daemon/core_allocator.h"

namespace berth {

CoreAllocator::CoreAllocator(const Cluster& cluster,
                             const std::vector<std::int32_t>& machine_cores) {
  std::size_t next = 0;
  for (const Node& node : cluster.nodes) {
    auto& free = free_[node.name];
    for (std::int64_t i = 0; i < node.cpus_milli / 1000 && next < machine_cores.size(); ++i)
      free.insert(machine_cores[next++]);
  }
}

std::vector<std::int32_t> CoreAllocator::take(const std::string& node, std::int32_t cores) {
  auto& free = free_[node];
  if (cores <= 0 || static_cast<std::size_t>(cores) > free.size()) return {};
  std::vector<std::int32_t> taken;
  while (taken.size() < static_cast<std::size_t>(cores))
    taken.push_back(free.extract(free.begin()).value());
  return taken;
}

void CoreAllocator::retake(const std::string& node, const std::vector<std::int32_t>& cores) {
  for (const std::int32_t core : cores) free_[node].erase(core);
}

void CoreAllocator::give(const std::string& node, const std::vector<std::int32_t>& cores) {
  free_[node].insert(cores.begin(), cores.end());
}

std::int32_t CoreAllocator::free_on(const std::string& node) const {
  const auto found = free_.find(node);
  return found == free_.end() ? 0 : static_cast<std::int32_t>(found->second.size());
}

}  // namespace berth
