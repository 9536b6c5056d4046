// The placement `topology`: a gang goes to the lowest level of the topology tree that has room, on
// it to the tightest vertex (core/topology_index.h). Classes that spreading hurts most (label
// strict of perf/locality.h) wait for the lowest level that could ever hold them, at best a server;
// the others take the closest place there is now. So do those whose cores or memory decide how many
// of them a server holds: which level could ever do is not known without looking at every server. A
// fraction goes to the device with the fewest free slots that suffice (core/slot_index.h).
// `topology:interference` also keeps jobs that load the bus of a server apart (quiet_match.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/placement.h"
#include "perf/profile.h"

namespace berth {

enum class Interference : std::uint8_t { Ignored, Avoided };

/// Classes are looked up in `profiles`; an unknown model has the class default. Labels are taken
/// with the default links: a shape must not depend on the cluster it is tried on.
[[nodiscard]] std::unique_ptr<Placement> make_topology_placement(
    std::shared_ptr<const ProfileSet> profiles, Interference interference);

/// Parts of a match as slices, in their order.
void append_slices(std::span<const DeviceSet> parts, std::vector<Slice>& slices);

/// What cores and memory leave of a server for a shape.
class ShapeRoom final : public ServerRoom {
 public:
  ShapeRoom(const ClusterState& state, const Shape& shape) : state_(state), shape_(shape) {}
  [[nodiscard]] std::int32_t room(NodeId node) const override {
    return state_.room_on(node, shape_);
  }

 private:
  const ClusterState& state_;
  const Shape& shape_;
};

}  // namespace berth
