#include "policies/common/buddy_servers.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

namespace berth {

namespace {

constexpr std::uint64_t low_bits(std::int32_t count) noexcept {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

std::int32_t common_size(const Cluster& cluster, PoolId pool) {
  std::map<std::int32_t, std::int64_t> gpus_in;
  for (const Node& node : cluster.nodes) {
    if (node.pool == pool) gpus_in[node.gpus] += node.gpus;
  }
  const auto most = std::ranges::max_element(
      gpus_in, {}, [](const auto& entry) { return std::pair(entry.second, -entry.first); });
  return most == gpus_in.end() ? 0 : most->first;
}

std::int32_t power_of_two_from(std::int32_t gpus) noexcept {
  return static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(gpus)));
}

}  // namespace

BuddyServers::BuddyServers(const Cluster& cluster, PoolId pool)
    : gpus_(common_size(cluster, pool)) {
  slots_ = static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(gpus_)));
  all_ = low_bits(gpus_);
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    first_of_node_.push_back(static_cast<std::uint32_t>(servers_.size()));
    const Node& node = cluster.nodes[i];
    if (node.pool != pool || gpus_ == 0) continue;
    for (std::int32_t offset = 0; offset + gpus_ <= node.gpus; offset += gpus_)
      servers_.push_back({NodeId{i}, offset});
  }
}

std::int64_t BuddyServers::rounded(std::int32_t gpus) const noexcept {
  if (is_small(gpus) || gpus_ == 0) return power_of_two_from(gpus);
  return std::int64_t{(gpus + gpus_ - 1) / gpus_} * slots_;
}

std::int64_t BuddyServers::capacity(const ClusterState& state) const noexcept {
  const auto up =
      std::ranges::count_if(servers_, [&](const Server& one) { return state.is_up(one.node); });
  return std::int64_t{up} * slots_;
}

std::optional<std::uint32_t> BuddyServers::server_of(const Slice& slice) const noexcept {
  const auto first_device = std::countr_zero(slice.devices);
  const std::uint32_t server =
      first_of_node_[slice.node.value] + static_cast<std::uint32_t>(first_device / gpus_);
  if (server >= servers_.size() || servers_[server].node != slice.node) return std::nullopt;
  const bool inside = (slice.devices & ~(all_ << servers_[server].offset)) == 0;
  return inside ? std::optional{server} : std::nullopt;
}

std::optional<BuddyBlocks> BuddyServers::around(std::span<const Slice> slices,
                                                std::int32_t gpus) const {
  BuddyBlocks blocks;
  if (!is_small(gpus)) {
    const auto count = static_cast<std::size_t>((gpus + gpus_ - 1) / gpus_);
    for (const Slice& slice : slices) {  // a slice may cover several servers of a large node
      for (std::uint32_t s = first_of_node_[slice.node.value];
           s < servers_.size() && servers_[s].node == slice.node; ++s) {
        if (of_node(s, slice.devices) != 0) blocks.push_back({s, all_});
      }
    }
    return blocks.size() == count ? std::optional{blocks} : std::nullopt;
  }
  if (slices.size() != 1) return std::nullopt;
  const auto server = server_of(slices.front());
  if (!server) return std::nullopt;
  const std::uint64_t held = of_node(*server, slices.front().devices);
  const std::int32_t size = power_of_two_from(gpus);
  const std::int32_t offset = std::countr_zero(held) / size * size;
  const std::uint64_t block = low_bits(size) << offset;
  if ((held & ~block) != 0 || offset + size > slots_) return std::nullopt;
  blocks.push_back({*server, block});
  return blocks;
}

std::vector<Slice> BuddyServers::slices(const BuddyBlocks& blocks, std::int32_t gpus) const {
  std::vector<Slice> slices;
  std::int32_t left = gpus;
  for (const BuddyBlock& block : blocks) {
    std::uint64_t devices = 0;
    for (std::uint64_t rest = block.devices; rest != 0 && left > 0; rest &= rest - 1, --left)
      devices |= rest & (~rest + 1);
    devices <<= servers_[block.server].offset;
    if (devices == 0) continue;
    const NodeId node = servers_[block.server].node;
    const std::int32_t count = std::popcount(devices);
    if (!slices.empty() && slices.back().node == node) {
      slices.back().devices |= devices;
      slices.back().gpus += count;
    } else {
      slices.push_back({.node = node, .gpus = count, .devices = devices});
    }
  }
  return slices;
}

std::optional<BuddyBlocks> BuddyServers::find(const Map& map, std::int32_t gpus) const {
  if (gpus_ == 0) return std::nullopt;
  if (is_small(gpus)) return find_block(map, power_of_two_from(gpus));
  return find_whole(map, static_cast<std::size_t>((gpus + gpus_ - 1) / gpus_));
}

std::optional<BuddyBlocks> BuddyServers::find_block(const Map& map, std::int32_t size) const {
  using Cost = std::tuple<int, int, std::int32_t>;
  std::optional<Cost> best;
  BuddyBlock place;
  for (std::uint32_t s = 0; s < servers_.size(); ++s) {
    if (map.taken[s] == all_) continue;
    for (std::int32_t offset = 0; offset + size <= slots_; offset += size) {
      const std::uint64_t block = low_bits(size) << offset;
      if ((map.taken[s] & block) != 0) continue;
      std::int32_t whole = size;  // of the largest free block around
      while (whole < slots_) {
        const std::int32_t start = offset / (2 * whole) * (2 * whole);
        if ((map.taken[s] & (low_bits(2 * whole) << start)) != 0) break;
        whole *= 2;
      }
      const Cost cost{std::popcount(map.settled[s] & block), std::popcount(map.lent[s] & block),
                      whole};
      if (best && *best <= cost) continue;
      best = cost;
      place = {s, block};
      if (cost == Cost{0, 0, size}) return BuddyBlocks{place};  // cannot be better
    }
  }
  if (!best) return std::nullopt;
  return BuddyBlocks{place};
}

std::optional<BuddyBlocks> BuddyServers::find_whole(const Map& map, std::size_t count) const {
  std::vector<std::tuple<int, int, std::uint32_t>> order;
  for (std::uint32_t s = 0; s < servers_.size(); ++s) {
    if (map.taken[s] == 0)
      order.push_back({std::popcount(map.settled[s]), std::popcount(map.lent[s]), s});
  }
  if (order.size() < count) return std::nullopt;
  std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(count) - 1);
  order.resize(count);
  std::ranges::sort(order, {}, [](const auto& entry) { return std::get<2>(entry); });
  BuddyBlocks blocks;
  for (const auto& entry : order) blocks.push_back({std::get<2>(entry), all_});
  return blocks;
}

std::vector<std::optional<BuddyBlocks>> place_tenants(const BuddyServers& servers,
                                                      std::span<const BuddyTenant> tenants,
                                                      BuddyServers::Map map) {
  std::vector<std::size_t> order(tenants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple(-servers.rounded(tenants[i].gpus), !tenants[i].own, i);
  });
  const auto settle = [&](const BuddyBlocks& blocks, bool stays) {
    for (const BuddyBlock& block : blocks) {
      std::uint64_t& settled = map.settled[block.server];
      settled = stays ? settled | block.devices : settled & ~block.devices;
    }
  };
  for (const BuddyTenant& tenant : tenants) {
    if (tenant.own) settle(*tenant.own, true);
  }
  std::vector<std::optional<BuddyBlocks>> places(tenants.size());
  for (const std::size_t i : order) {
    const BuddyTenant& tenant = tenants[i];
    const auto is_free = [&](const BuddyBlock& block) {
      return (map.taken[block.server] & block.devices) == 0;
    };
    if (tenant.own) settle(*tenant.own, false);
    const bool stays = tenant.own && std::ranges::all_of(*tenant.own, is_free);
    places[i] = stays ? tenant.own : servers.find(map, tenant.gpus);
    if (!places[i]) continue;
    for (const BuddyBlock& block : *places[i]) map.taken[block.server] |= block.devices;
  }
  return places;
}

}  // namespace berth
