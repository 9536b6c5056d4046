#include "model/rack_numbering.h"

#include <fmt/format.h>

namespace berth {

RackId RackNumbering::rack_named(const std::string& name) {
  const auto [entry, fresh] =
      rack_ids_.try_emplace(name, RackId{static_cast<std::uint32_t>(racks_.size())});
  if (fresh) {
    racks_.push_back(name);
    zone_of_.emplace_back();
  }
  return entry->second;
}

RackId RackNumbering::numbered_rack() {
  for (;;) {
    const std::string name = fmt::format("r{}", next_rack_++);
    if (!reserved_racks_.contains(name)) return rack_named(name);
  }
}

// Groups of one zone that say nothing of racks stand in the same one.
RackId RackNumbering::common_rack(std::optional<ZoneId> zone) {
  if (const auto known = common_.find(zone); known != common_.end()) return known->second;
  return common_.emplace(zone, numbered_rack()).first->second;
}

ZoneId RackNumbering::zone_named(const std::string& name) {
  const auto [entry, fresh] =
      zone_ids_.try_emplace(name, ZoneId{static_cast<std::uint32_t>(zones_.size())});
  if (fresh) zones_.push_back(name);
  return entry->second;
}

ZoneId RackNumbering::numbered_zone() {
  for (;;) {
    const std::string name = fmt::format("z{}", next_zone_++);
    if (!reserved_zones_.contains(name)) return zone_named(name);
  }
}

// False if the rack stands in another zone already.
bool RackNumbering::put(RackId rack, ZoneId zone) {
  std::optional<ZoneId>& place = zone_of_[rack.value];
  if (!place) place = zone;
  return *place == zone;
}

void RackNumbering::finish(Cluster& cluster) {
  std::optional<ZoneId> rest;
  for (std::optional<ZoneId>& zone : zone_of_) {
    if (zone) continue;
    if (!rest) rest = numbered_zone();
    zone = rest;
  }
  // The topology tree needs a root: a cluster has at least one zone.
  if (zones_.empty()) numbered_zone();
  cluster.racks = racks_;
  cluster.zones = zones_;
  cluster.rack_zones.clear();
  for (const std::optional<ZoneId>& zone : zone_of_) cluster.rack_zones.push_back(*zone);
}

}  // namespace berth
