// Names and numbers of racks and zones while a cluster file is read. What the file names is told
// first (reserve_*), so that a numbered rack or zone never takes a name. Racks that were put into
// no zone stand together in one of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/cluster.h"

namespace berth {

class RackNumbering {
 public:
  void reserve_rack(const std::string& name) { reserved_racks_.insert(name); }
  void reserve_zone(const std::string& name) { reserved_zones_.insert(name); }

  RackId rack_named(const std::string& name);
  RackId numbered_rack();
  /// The one rack of all groups of a zone (or of none) that say nothing of racks.
  RackId common_rack(std::optional<ZoneId> zone);
  ZoneId zone_named(const std::string& name);
  ZoneId numbered_zone();

  /// False if the rack stands in another zone already.
  [[nodiscard]] bool put(RackId rack, ZoneId zone);
  [[nodiscard]] const std::string& rack_name(RackId rack) const { return racks_[rack.value]; }
  [[nodiscard]] const std::string& zone_name(ZoneId zone) const { return zones_[zone.value]; }
  [[nodiscard]] std::optional<ZoneId> zone_of(RackId rack) const { return zone_of_[rack.value]; }

  /// Writes racks and zones; there is at least one zone then.
  void finish(Cluster& cluster);

 private:
  std::vector<std::string> racks_;
  std::vector<std::optional<ZoneId>> zone_of_;  // by RackId
  std::vector<std::string> zones_;
  std::unordered_set<std::string> reserved_racks_;
  std::unordered_set<std::string> reserved_zones_;
  std::unordered_map<std::string, RackId> rack_ids_;
  std::unordered_map<std::string, ZoneId> zone_ids_;
  std::map<std::optional<ZoneId>, RackId> common_;
  std::int32_t next_rack_ = 0;
  std::int32_t next_zone_ = 0;
};

}  // namespace berth
