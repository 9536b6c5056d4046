#include "placements/node_rooms.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace berth {

bool NodeDemand::accepts(PoolId pool) const noexcept {
  return pools.empty() || std::ranges::find(pools, pool) != pools.end();
}

NodeId NodeRooms::add(PoolId pool, std::int32_t gpus, std::int64_t cpus_milli,
                      std::int64_t memory_mib) {
  BERTH_CHECK(gpus >= 0 && static_cast<std::size_t>(gpus) <= stride_,
              "no node has more devices than the table was made for");
  const NodeId node{static_cast<std::uint32_t>(rooms_.size())};
  rooms_.push_back({.pool = pool,
                    .gpus = gpus,
                    .free_milli = gpus * kWholeDevice,
                    .cpus_milli = cpus_milli,
                    .memory_mib = memory_mib});
  free_.resize(free_.size() + stride_);
  const auto begin = free_.end() - static_cast<std::ptrdiff_t>(stride_);
  std::fill(begin, begin + gpus, std::uint16_t{kWholeDevice});
  note_change(node);
  return node;
}

void NodeRooms::note_change(NodeId node) {
  ++rooms_[node].version;
  log_.note(node);
}

void NodeRooms::set(NodeId node, std::int64_t cpus_milli, std::int64_t memory_mib,
                    std::span<const std::uint16_t> free_now) {
  Room& room = rooms_[node];
  if (room.cpus_milli == cpus_milli && room.memory_mib == memory_mib &&
      std::ranges::equal(free(node), free_now)) {
    return;
  }
  room.cpus_milli = cpus_milli;
  room.memory_mib = memory_mib;
  room.free_milli = 0;
  for (std::size_t device = 0; device < free_now.size(); ++device) {
    free_[node.value * stride_ + device] = free_now[device];
    room.free_milli += free_now[device];
  }
  note_change(node);
}

void NodeRooms::add_to(const NodeChoice& choice, const NodeDemand& demand, std::int32_t sign) {
  Room& room = rooms_[choice.node];
  room.cpus_milli += sign * demand.cpus_milli;
  room.memory_mib += sign * demand.memory_mib;
  for (std::uint64_t rest = choice.devices; rest != 0; rest &= rest - 1) {
    std::uint16_t& milli =
        free_[choice.node.value * stride_ + static_cast<std::size_t>(std::countr_zero(rest))];
    const std::int32_t now = milli + sign * demand.gpu_milli;
    BERTH_CHECK(now >= 0 && now <= kWholeDevice, "a device has between nothing and all of it free");
    milli = static_cast<std::uint16_t>(now);
    room.free_milli += sign * demand.gpu_milli;
  }
  BERTH_CHECK(room.cpus_milli >= 0 && room.memory_mib >= 0, "nobody takes what is not there");
  note_change(choice.node);
}

void NodeRooms::take(const NodeChoice& choice, const NodeDemand& demand) {
  add_to(choice, demand, -1);
}

void NodeRooms::give(const NodeChoice& choice, const NodeDemand& demand) {
  add_to(choice, demand, 1);
}

bool NodeRooms::holds(NodeId node, const NodeDemand& demand) const noexcept {
  const Room& room = rooms_[node];
  if (room.cpus_milli < demand.cpus_milli || room.memory_mib < demand.memory_mib) return false;
  if (demand.gpus == 0) return true;
  if (room.free_milli < demand.gpus * demand.gpu_milli || !demand.accepts(room.pool)) return false;
  std::int32_t fitting = 0;
  for (const std::uint16_t milli : free(node)) fitting += milli >= demand.gpu_milli ? 1 : 0;
  return fitting >= demand.gpus;
}

std::uint64_t NodeRooms::whole_devices(NodeId node, std::int32_t count) const noexcept {
  std::uint64_t devices = 0;
  const auto all = free(node);
  for (std::size_t device = 0; device < all.size() && count > 0; ++device) {
    if (all[device] < kWholeDevice) continue;
    devices |= std::uint64_t{1} << device;
    --count;
  }
  return devices;
}

std::uint64_t NodeRooms::tightest_device(NodeId node, std::int32_t milli) const noexcept {
  const auto all = free(node);
  std::optional<std::size_t> best;
  for (std::size_t device = 0; device < all.size(); ++device) {
    if (all[device] >= milli && (!best || all[device] < all[*best])) best = device;
  }
  return best ? std::uint64_t{1} << *best : 0;
}

}  // namespace berth
