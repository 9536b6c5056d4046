#include "policies/antman/spare_devices.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace berth::antman {

namespace {

constexpr double kRounding = 1e-9;  // 0.7 is 14 steps of 1/20 whatever the last bit

}  // namespace

SpareDevices::SpareDevices(std::size_t nodes, std::int32_t largest_node)
    : largest_(largest_node), nodes_(nodes) {
  for (Node& node : nodes_) node.level.assign(static_cast<std::size_t>(largest_), kNone);
  for (auto& sets : by_offer_) sets.assign(static_cast<std::size_t>(largest_) + 1, NodeSet{nodes});
}

std::int32_t level_within(double utilisation) noexcept {
  const double level = std::floor(utilisation * (kUtilisationLevels - 1) + kRounding);
  return static_cast<std::int32_t>(std::clamp(level, 0.0, kUtilisationLevels - 1.0));
}

void SpareDevices::offer(NodeId node, std::int32_t device, double utilisation) {
  const double level = std::ceil(utilisation * (kUtilisationLevels - 1) - kRounding);
  set_level(node, device,
            static_cast<std::int8_t>(std::clamp(level, 0.0, kUtilisationLevels - 1.0)));
}

void SpareDevices::withdraw(NodeId node, std::int32_t device) { set_level(node, device, kNone); }

void SpareDevices::set_level(NodeId id, std::int32_t device, std::int8_t level) {
  Node& node = nodes_[id.value];
  std::int8_t& current = node.level[static_cast<std::size_t>(device)];
  const std::int32_t change = level < current ? 1 : -1;
  for (std::int32_t l = std::min(level, current); l < std::max(level, current); ++l) {
    const auto at = static_cast<std::size_t>(l);
    std::int32_t& offered = node.offered[at];
    if (offered > 0) by_offer_[at][static_cast<std::size_t>(offered)].erase(id);
    offered += change;
    total_[at] += change;
    if (offered > 0) by_offer_[at][static_cast<std::size_t>(offered)].insert(id);
  }
  current = level;
}

/// The server with the fewest candidates that are enough.
std::optional<NodeId> SpareDevices::tightest(std::size_t level, std::int32_t gpus) const {
  for (std::int32_t offered = gpus; offered <= largest_; ++offered) {
    if (const auto node = by_offer_[level][static_cast<std::size_t>(offered)].first()) return node;
  }
  return std::nullopt;
}

/// The least used candidates of the server, lower devices first.
Slice SpareDevices::pick(NodeId id, std::int32_t gpus) const {
  const Node& node = nodes_[id.value];
  Slice slice{id, 0, 0};
  for (std::int8_t level = 0; level < kNone && slice.gpus < gpus; ++level) {
    for (std::size_t device = 0; device < node.level.size() && slice.gpus < gpus; ++device) {
      if (node.level[device] != level) continue;
      slice.devices |= std::uint64_t{1} << device;
      ++slice.gpus;
    }
  }
  BERTH_CHECK(slice.gpus == gpus, "a server offers what its count says");
  return slice;
}

std::optional<std::vector<Slice>> SpareDevices::choose(std::int32_t gpus,
                                                       std::int32_t highest) const {
  const auto levels = static_cast<std::size_t>(highest) + 1;
  if (gpus <= 0 || total_[levels - 1] < gpus) return std::nullopt;
  for (std::size_t level = 0; level < levels; ++level) {
    if (const auto node = tightest(level, gpus)) return std::vector{pick(*node, gpus)};
  }
  const auto enough = std::ranges::find_if(total_, [&](std::int64_t all) { return all >= gpus; });
  const auto level = static_cast<std::size_t>(enough - total_.begin());
  std::vector<Slice> slices;
  for (std::int32_t offered = largest_; offered > 0 && gpus > 0; --offered) {
    const NodeSet& set = by_offer_[level][static_cast<std::size_t>(offered)];
    for (auto node = set.first(); node && gpus > 0; node = set.next(NodeId{node->value + 1})) {
      slices.push_back(pick(*node, std::min(gpus, offered)));
      gpus -= slices.back().gpus;
    }
  }
  return slices;
}

}  // namespace berth::antman
