#include "placements/fraction_rules.h"

#include <algorithm>
#include <limits>

namespace berth {

namespace {

bool same_size(const NodeDemand& demand, std::int32_t gpus, std::int32_t gpu_milli) noexcept {
  return demand.gpus == gpus && demand.gpu_milli == gpu_milli;
}

}  // namespace

void TaskSizes::add(NodeId node, const NodeDemand& demand) {
  if (demand.gpus == 0) return;
  for (Count& count : by_node_[node]) {
    if (same_size(demand, count.gpus, count.gpu_milli)) {
      ++count.tasks;
      return;
    }
  }
  by_node_[node].push_back({demand.gpus, demand.gpu_milli, 1});
}

void TaskSizes::remove(NodeId node, const NodeDemand& demand) {
  auto& counts = by_node_[node];
  for (Count& count : counts) {
    if (!same_size(demand, count.gpus, count.gpu_milli)) continue;
    if (--count.tasks == 0) {
      count = counts.back();
      counts.pop_back();
    }
    return;
  }
}

TaskSizes::Company TaskSizes::company(NodeId node, const NodeDemand& demand) const noexcept {
  const auto& counts = by_node_[node];
  if (counts.empty()) return Company::Nobody;
  const bool some = std::ranges::any_of(
      counts, [&](const Count& count) { return same_size(demand, count.gpus, count.gpu_milli); });
  if (!some) return Company::OnlyOthers;
  return counts.size() == 1 ? Company::OnlySame : Company::AlsoSame;
}

FractionPlacer::FractionPlacer(FractionRule rule, const NodeRooms& rooms, const TaskSizes& sizes)
    : rule_(rule), rooms_(&rooms), sizes_(&sizes) {
  for (std::uint32_t i = 0; i < rooms.size(); ++i) {
    const NodeRooms::Room& room = rooms[NodeId{i}];
    most_cpus_ = std::max(most_cpus_, static_cast<double>(room.cpus_milli));
    most_milli_ = std::max(most_milli_, static_cast<double>(room.gpus * kWholeDevice));
  }
}

double FractionPlacer::rest_after(const NodeRooms::Room& room, const NodeDemand& demand) const {
  const auto cpus = static_cast<double>(room.cpus_milli - demand.cpus_milli);
  const auto milli = static_cast<double>(room.free_milli - demand.gpus * demand.gpu_milli);
  return 0.5 * cpus / most_cpus_ + 0.5 * milli / most_milli_;
}

double FractionPlacer::alignment(const NodeRooms::Room& room, const NodeDemand& demand) const {
  const double cpus = static_cast<double>(room.cpus_milli) / most_cpus_ *
                      (static_cast<double>(demand.cpus_milli) / most_cpus_);
  const double milli = static_cast<double>(room.free_milli) / most_milli_ *
                       (static_cast<double>(demand.gpus * demand.gpu_milli) / most_milli_);
  return cpus + milli;
}

double FractionPlacer::packing_rank(NodeId node, const NodeDemand& demand) const {
  const NodeRooms::Room& room = (*rooms_)[node];
  const bool in_use =
      demand.is_fraction() && std::ranges::any_of(rooms_->free(node), [&](std::uint16_t milli) {
        return milli < kWholeDevice && milli >= demand.gpu_milli;
      });
  if (in_use) return 0;
  return room.taken_milli() > 0 ? 1 : 2;
}

double FractionPlacer::badness(NodeId node, const NodeDemand& demand) const {
  const NodeRooms::Room& room = (*rooms_)[node];
  const double emptiness = static_cast<double>(room.free_milli) / (most_milli_ + 1);  // below 1
  switch (rule_) {
    case FractionRule::RandomFit: return 0;
    case FractionRule::BestFit: return rest_after(room, demand);
    case FractionRule::DotProduct: return alignment(room, demand);
    case FractionRule::GpuPacking: return packing_rank(node, demand) + emptiness;
    case FractionRule::GpuClustering: break;
  }
  return static_cast<double>(sizes_->company(node, demand)) + emptiness;
}

std::uint64_t FractionPlacer::devices_on(NodeId node, const NodeDemand& demand, Rng& rng) const {
  if (!demand.is_fraction()) return rooms_->whole_devices(node, demand.gpus);
  if (rule_ != FractionRule::RandomFit) return rooms_->tightest_device(node, demand.gpu_milli);
  const auto free = rooms_->free(node);
  const auto holds = [&](std::uint16_t milli) { return milli >= demand.gpu_milli; };
  auto rank = rng.below(static_cast<std::uint64_t>(std::ranges::count_if(free, holds)));
  std::size_t device = 0;
  while (!holds(free[device]) || rank-- > 0) ++device;
  return std::uint64_t{1} << device;
}

std::optional<NodeChoice> FractionPlacer::choose(const NodeDemand& demand, Rng& rng) {
  candidates_.clear();
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < rooms_->size(); ++i) {
    const NodeId node{i};
    if (!rooms_->holds(node, demand)) continue;
    const double bad = badness(node, demand);
    if (bad > least || (bad == least && rule_ != FractionRule::RandomFit)) continue;
    if (bad < least) candidates_.clear();
    least = bad;
    candidates_.push_back(node);
  }
  if (candidates_.empty()) return std::nullopt;
  const NodeId node =
      candidates_.size() == 1 ? candidates_[0] : candidates_[rng.below(candidates_.size())];
  return NodeChoice{node, devices_on(node, demand, rng)};
}

}  // namespace berth
