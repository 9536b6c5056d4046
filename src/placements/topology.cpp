#include "placements/topology.h"

#include <bit>
#include <utility>

#include "perf/locality.h"
#include "placements/quiet_match.h"

namespace berth {

namespace {

/// What cores and memory alone leave of a server: devices may be in use by others.
class SideRoom final : public ServerRoom {
 public:
  SideRoom(const ClusterState& state, const Shape& shape) : state_(state), shape_(shape) {}
  [[nodiscard]] std::int32_t room(NodeId node) const override {
    return state_.side_room_on(node, shape_);
  }

 private:
  const ClusterState& state_;
  const Shape& shape_;
};

class TopologyPlacement final : public Placement {
 public:
  TopologyPlacement(std::shared_ptr<const ProfileSet> profiles, Interference interference)
      : profiles_(std::move(profiles)), interference_(interference) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "topology"; }
  [[nodiscard]] bool wants_topology() const noexcept override { return true; }
  [[nodiscard]] bool places_fractions() const noexcept override { return true; }
  [[nodiscard]] bool minds_neighbours() const noexcept override {
    return interference_ == Interference::Avoided;
  }

  [[nodiscard]] Locality locality_of(const JobRequest& request,
                                     std::string_view model) const override {
    const Profile& profile = (*profiles_)[profiles_->find(model).value_or(ProfileSet::fallback())];
    const auto sensitivity =
        locality_sensitivity(profile.iteration, profile.batch, request.gpus, Links{});
    return locality_label(sensitivity) == LocalityLabel::Strict ? Locality::Consolidated
                                                                : Locality::Relaxed;
  }

  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng&,
                           std::vector<Slice>& slices) override {
    if (state.topology() != nullptr) return place_by(*state.topology(), state, shape, pool, slices);
    // A state somebody made for a look ahead: the same answer, at the price of a fresh index.
    ClusterState indexed = state;
    indexed.track_topology();
    return place_by(*indexed.topology(), state, shape, pool, slices);
  }

 private:
  bool place_by(const TopologyIndex& index, const ClusterState& state, const Shape& shape,
                PoolId pool, std::vector<Slice>& slices) {
    if (shape.is_fraction() && state.slots() != nullptr)
      return place_fraction(*state.slots(), state, shape, pool, slices);
    const ShapeRoom room(state, shape);
    MatchQuery query{.pool = pool, .gpus = shape.gpus};
    if (shape.needs_side_resources())
      query.room = &room;
    else if (shape.locality == Locality::Consolidated)
      query.max_level = index.lowest_possible(pool, shape.gpus);
    const BusTable* buses = minds_neighbours() ? state.buses() : nullptr;
    const auto match = find_quiet(index, buses, shape.bus_milli, query, buffer_);
    if (!match) return false;
    append_slices(match->parts, slices);
    return true;
  }

  /// A fraction takes as many slots of one device as it fills.
  bool place_fraction(const SlotIndex& index, const ClusterState& state, const Shape& shape,
                      PoolId pool, std::vector<Slice>& slices) {
    if (shape.gpu_milli == 0) return false;  // cores alone have no place in a tree of devices
    const SideRoom room(state, shape);
    SlotQuery query{.pool = pool};
    query.slots = (shape.gpu_milli * index.slots_per_device(pool) + 999) / 1000;
    if (shape.needs_side_resources()) query.room = &room;
    const auto match = index.find(query, buffer_);
    if (!match) return false;
    append_slices(match->parts, slices);
    return true;
  }

  std::shared_ptr<const ProfileSet> profiles_;
  Interference interference_;
  std::vector<DeviceSet> buffer_;  // scratch
};

}  // namespace

std::unique_ptr<Placement> make_topology_placement(std::shared_ptr<const ProfileSet> profiles,
                                                   Interference interference) {
  return std::make_unique<TopologyPlacement>(std::move(profiles), interference);
}

void append_slices(std::span<const DeviceSet> parts, std::vector<Slice>& slices) {
  for (const DeviceSet& part : parts)
    slices.push_back({part.node, std::popcount(part.devices), part.devices});
}

}  // namespace berth
