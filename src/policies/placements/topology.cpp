#include "policies/placements/topology.h"

#include <bit>
#include <utility>

#include "perf/locality.h"

namespace berth {

namespace {

class TopologyPlacement final : public Placement {
 public:
  explicit TopologyPlacement(std::shared_ptr<const ProfileSet> profiles)
      : profiles_(std::move(profiles)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "topology"; }
  [[nodiscard]] bool wants_topology() const noexcept override { return true; }

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
    const ShapeRoom room(state, shape);
    MatchQuery query{.pool = pool, .gpus = shape.gpus};
    if (shape.needs_side_resources())
      query.room = &room;
    else if (shape.locality == Locality::Consolidated)
      query.max_level = index.lowest_possible(pool, shape.gpus);
    const auto match = index.find(query, buffer_);
    if (!match) return false;
    append_slices(match->parts, slices);
    return true;
  }

  std::shared_ptr<const ProfileSet> profiles_;
  std::vector<DeviceSet> buffer_;  // scratch
};

}  // namespace

std::unique_ptr<Placement> make_topology_placement(std::shared_ptr<const ProfileSet> profiles) {
  return std::make_unique<TopologyPlacement>(std::move(profiles));
}

void append_slices(std::span<const DeviceSet> parts, std::vector<Slice>& slices) {
  for (const DeviceSet& part : parts)
    slices.push_back({part.node, std::popcount(part.devices), part.devices});
}

}  // namespace berth
