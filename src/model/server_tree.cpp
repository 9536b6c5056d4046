// Builds the tree inside a server from its sockets, switches and NVLink islands. Every group is a
// set of devices; groups that nest become vertices, largest first, and a kind of group that cuts
// across another is left out.

#include <algorithm>
#include <bit>

#include "model/topology.h"

namespace berth {

namespace {

std::uint64_t run_of(std::int32_t first, std::int32_t count) noexcept {
  const std::uint64_t ones =
      count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << static_cast<unsigned>(count)) - 1;
  return ones << static_cast<unsigned>(first);
}

/// Devices dealt out in order, the first parts one larger where it does not go even.
std::vector<std::uint64_t> even_parts(std::int32_t devices, std::int32_t parts) {
  std::vector<std::uint64_t> masks;
  for (std::int32_t i = 0, first = 0; i < parts; ++i) {
    const std::int32_t size = devices / parts + (i < devices % parts ? 1 : 0);
    if (size > 0) masks.push_back(run_of(first, size));
    first += size;
  }
  return masks;
}

std::vector<std::uint64_t> blocks(std::int32_t devices, std::int32_t size) {
  std::vector<std::uint64_t> masks;
  for (std::int32_t first = 0; first < devices; first += size)
    masks.push_back(run_of(first, std::min(size, devices - first)));
  return masks;
}

/// Devices that reach each other over direct links.
std::vector<std::uint64_t> components(const NvlinkMatrix& matrix) {
  std::vector<std::uint64_t> masks;
  std::uint64_t seen = 0;
  for (std::int32_t start = 0; start < matrix.devices; ++start) {
    if (((seen >> start) & 1U) != 0) continue;
    std::uint64_t reached = std::uint64_t{1} << start;
    for (std::uint64_t open = reached; open != 0; open &= open - 1) {
      const auto here = static_cast<std::int32_t>(std::countr_zero(open));
      for (std::int32_t there = 0; there < matrix.devices; ++there) {
        const std::uint64_t bit = std::uint64_t{1} << there;
        if (matrix.at(here, there) <= 0 || (reached & bit) != 0) continue;
        reached |= bit;
        open |= bit;
      }
    }
    seen |= reached;
    masks.push_back(reached);
  }
  return masks;
}

// Disjoint, or one inside the other.
bool nests(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t common = a & b;
  return common == 0 || common == a || common == b;
}

class Builder {
 public:
  Builder(const Cluster& cluster, const Node& node) : cluster_(cluster), node_(node) {
    groups_.push_back(
        {VertexType::Server, Level::Server, Level::Server, 0, 0, 0, run_of(0, node.gpus), {}});
  }

  ServerTree build() {
    add_groups();
    // Parents before children: a larger set can only contain smaller ones.
    std::ranges::sort(groups_, [](const InnerVertex& a, const InnerVertex& b) {
      const int x = std::popcount(a.devices);
      const int y = std::popcount(b.devices);
      return x != y ? x > y : std::countr_zero(a.devices) < std::countr_zero(b.devices);
    });
    ServerTree tree;
    tree.vertices.push_back(groups_.front());
    for (std::uint32_t i = 0; i < tree.vertices.size(); ++i) add_children(tree, i);
    add_rings(tree);
    return tree;
  }

 private:
  void add_groups() {
    if (node_.nvlink)
      add_all(VertexType::Island, components(cluster_.nvlinks[*node_.nvlink]));
    else if (node_.shape.nvlink_island > 1)
      add_all(VertexType::Island, blocks(node_.gpus, node_.shape.nvlink_island));
    add_all(VertexType::Socket, even_parts(node_.gpus, node_.shape.sockets));
    if (node_.shape.switches > 0)
      add_all(VertexType::Switch, even_parts(node_.gpus, node_.shape.switches));
    for (InnerVertex& group : groups_) {  // inside of an island everything is as fast as the island
      for (const std::uint64_t island : islands_) {
        if ((group.devices & ~island) == 0) group.level = Level::Nvlink;
      }
    }
    for (std::int32_t i = 0; i < node_.gpus; ++i) {
      groups_.push_back(
          {VertexType::Device, Level::Device, Level::Device, 0, 0, 0, run_of(i, 1), {}});
    }
  }

  /// A kind of group that cuts across a known one cannot be part of the tree and is left out.
  void add_all(VertexType type, const std::vector<std::uint64_t>& masks) {
    for (const std::uint64_t mask : masks) {
      const auto clashes = [&](const InnerVertex& other) { return !nests(other.devices, mask); };
      if (std::ranges::any_of(groups_, clashes)) return;
    }
    for (const std::uint64_t mask : masks) add(type, mask);
  }

  void add(VertexType type, std::uint64_t mask) {
    if (std::popcount(mask) < 2) return;
    if (type == VertexType::Island) islands_.push_back(mask);
    const Level bus = type == VertexType::Switch ? Level::Pcie : Level::Server;
    // One vertex per set of devices: a socket that is also a switch takes the faster bus of the
    // two.
    const auto same = std::ranges::find(groups_, mask, &InnerVertex::devices);
    if (same == groups_.end()) {
      groups_.push_back({type, bus, bus, 0, 0, 0, mask, {}});
    } else if (bus < same->bus) {
      same->level = std::min(same->level, bus);
      same->bus = bus;
    }
  }

  /// The children of a vertex: the largest groups inside it that do not lie inside another child.
  void add_children(ServerTree& tree, std::uint32_t parent) const {
    const std::uint64_t devices = tree.vertices[parent].devices;
    if (tree.vertices[parent].type == VertexType::Device) return;
    std::vector<InnerVertex> children;
    std::uint64_t covered = 0;
    for (const InnerVertex& group : groups_) {
      const bool is_below = (group.devices & ~devices) == 0 && (group.devices & covered) == 0 &&
                            (group.devices != devices || group.type == VertexType::Device);
      if (!is_below) continue;
      covered |= group.devices;
      children.push_back(group);
    }
    std::ranges::sort(children, {},
                      [](const InnerVertex& child) { return std::countr_zero(child.devices); });
    tree.vertices[parent].first_child = static_cast<std::uint32_t>(tree.vertices.size());
    tree.vertices[parent].child_count = static_cast<std::uint32_t>(children.size());
    for (InnerVertex& child : children) {
      child.parent = parent;
      child.up = cluster_.links.at(tree.vertices[parent].level);
      tree.vertices.push_back(child);
    }
  }

  // Pairs without NVLink use the lowest bus that connects them.
  void add_rings(ServerTree& tree) const {
    if (!node_.nvlink || node_.gpus > NvlinkRings::kMaxDevices) return;
    std::vector<double> bus;
    for (std::int32_t a = 0; a < node_.gpus; ++a) {
      for (std::int32_t b = 0; b < node_.gpus; ++b) {
        const std::uint64_t pair = run_of(a, 1) | run_of(b, 1);
        Level level = Level::Server;
        for (const InnerVertex& vertex : tree.vertices) {
          if ((pair & ~vertex.devices) == 0) level = std::min(level, vertex.bus);
        }
        bus.push_back(cluster_.links.at(level).bandwidth);
      }
    }
    tree.rings = std::make_shared<const NvlinkRings>(cluster_.nvlinks[*node_.nvlink], bus);
  }

  const Cluster& cluster_;
  const Node& node_;
  std::vector<InnerVertex> groups_;
  std::vector<std::uint64_t> islands_;
};

}  // namespace

ServerTree make_server_tree(const Cluster& cluster, const Node& node) {
  return Builder(cluster, node).build();
}

// The lowest vertex that holds all of them; with rings, a direct ring of NVLink counts as NVLink.
Level ServerTree::level_of(std::uint64_t devices) const noexcept {
  if (std::has_single_bit(devices)) return Level::Device;
  if (rings && rings->is_direct(devices)) return Level::Nvlink;
  Level level = Level::Server;
  for (const InnerVertex& vertex : vertices) {
    if ((devices & ~vertex.devices) == 0)
      level = std::min(level, rings ? vertex.bus : vertex.level);
  }
  return level;
}

Level ServerTree::lowest_level(std::int32_t gpus) const noexcept {
  if (gpus <= 1) return Level::Device;
  Level level = Level::Server;
  for (const InnerVertex& vertex : vertices) {
    if (std::popcount(vertex.devices) >= gpus)
      level = std::min(level, rings ? vertex.bus : vertex.level);
  }
  if (!rings) return level;
  for (std::uint64_t mask = 1; mask <= vertices.front().devices; ++mask) {
    if (std::popcount(mask) == gpus && rings->is_direct(mask)) return Level::Nvlink;
  }
  return level;
}

}  // namespace berth
