#include "placements/quiet_match.h"

#include <algorithm>
#include <limits>

namespace berth {

namespace {

/// The servers that are quieter than a limit; what else limits them still does.
class QuietRoom final : public ServerRoom {
 public:
  QuietRoom(const BusTable& buses, std::int32_t bus_milli, const ServerRoom* others)
      : buses_(buses), bus_milli_(bus_milli), others_(others) {}
  void keep_below(double limit) { limit_ = limit; }
  [[nodiscard]] std::int32_t room(NodeId node) const override {
    if (buses_.disturbance(node, bus_milli_) >= limit_) return 0;
    return others_ != nullptr ? others_->room(node) : std::numeric_limits<std::int32_t>::max();
  }

 private:
  const BusTable& buses_;
  std::int32_t bus_milli_;
  const ServerRoom* others_;
  double limit_ = 0;
};

double loudest(const BusTable& buses, std::int32_t bus_milli, std::span<const DeviceSet> parts) {
  double most = 0;
  for (const DeviceSet& part : parts)
    most = std::max(most, buses.disturbance(part.node, bus_milli));
  return most;
}

}  // namespace

std::optional<Match> find_quiet(const TopologyIndex& index, const BusTable* buses,
                                std::int32_t bus_milli, const MatchQuery& query,
                                std::vector<DeviceSet>& buffer) {
  auto best = index.find(query, buffer);
  if (!best || buses == nullptr) return best;
  QuietRoom room(*buses, bus_milli, query.room);
  MatchQuery quieter = query;
  quieter.room = &room;
  quieter.max_level = std::min(query.max_level, best->level);
  std::vector<DeviceSet> parts;
  for (int i = 0; i < kQuieter; ++i) {
    const double limit = loudest(*buses, bus_milli, buffer);
    if (limit <= 0) break;
    room.keep_below(limit);
    const auto next = index.find(quieter, parts);
    if (!next) break;
    buffer.swap(parts);
    best = Match{next->level, buffer};
  }
  return best;
}

}  // namespace berth
