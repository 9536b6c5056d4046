// Spare nodes beside any policy (`--power spare`): a small part of each device type is kept off
// and switched on for nodes that fail, so that a large gang that loses a node goes on without
// waiting for its repair. Repaired nodes are spares again once nobody needs them.
// O(nodes) per event.
#pragma once

#include <cstdint>
#include <vector>

#include "core/power_manager.h"

namespace berth {

/// Nodes of so many that are kept back; 0 of a single one.
[[nodiscard]] std::int32_t spares_of(std::int32_t nodes, double share) noexcept;

class SpareNodes final : public PowerManager {
 public:
  explicit SpareNodes(double share) : share_(share) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "spare"; }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void manage(const View& view, Plan& plan) override;

 private:
  struct Group {  // the nodes of one device type
    std::vector<NodeId> nodes;
    std::int32_t spares = 0;
  };
  void settle(const Group& group, std::int32_t spares, Plan& plan) const;

  double share_;
  std::vector<Group> groups_;
  std::vector<JobId> active_;  // arrived and not over
};

}  // namespace berth
