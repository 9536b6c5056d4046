// Where a gang goes. A placement chooses devices on the free part of a cluster; order and placement
// are separate choices of a run. It must be a deterministic function of the state, the shape and
// the rng, and must place a Relaxed shape whenever the pool has enough usable room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "core/cluster_state.h"
#include "core/shape.h"
#include "model/trace.h"

namespace berth {

class Placement {
 public:
  virtual ~Placement() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual ClusterState::Mode mode() const noexcept {
    return ClusterState::Mode::Devices;
  }
  /// True: it places requests for less than a device as such; otherwise they get a whole one.
  [[nodiscard]] virtual bool places_fractions() const noexcept { return false; }
  /// True: it asks the state's topology index, which is kept for it then.
  [[nodiscard]] virtual bool wants_topology() const noexcept { return false; }
  /// True: it follows the state's log of changes, which is kept for it then.
  [[nodiscard]] virtual bool wants_changes() const noexcept { return false; }
  /// True: it asks the state who is on which server, which is kept for it then.
  [[nodiscard]] virtual bool minds_neighbours() const noexcept { return false; }
  /// How close the devices of this job must be; part of its shape. A function of the model and the
  /// number of GPUs alone.
  [[nodiscard]] virtual Locality locality_of(const JobRequest&, std::string_view /*model*/) const {
    return Locality::Relaxed;
  }
  /// True: a Consolidated shape goes on the fewest nodes that could ever hold it, or nowhere.
  [[nodiscard]] virtual bool waits_for_fewest_nodes() const noexcept { return false; }
  /// Fills `slices` with a legal placement in the pool, or answers false and leaves it unspecified.
  [[nodiscard]] virtual bool place(const ClusterState& state, const Shape& shape, PoolId pool,
                                   Rng& rng, std::vector<Slice>& slices) = 0;
  /// The same in any pool of the shape; says in which. By default the first that has a place, in
  /// the order of the request: who weighs nodes of several types against each other does it here.
  [[nodiscard]] virtual std::optional<PoolId> place_in_any(const ClusterState& state,
                                                           const Shape& shape, Rng& rng,
                                                           std::vector<Slice>& slices) {
    for (const PoolId pool : shape.pools) {
      slices.clear();
      if (state.may_hold(pool, shape) && place(state, shape, pool, rng, slices)) return pool;
    }
    return std::nullopt;
  }
};

}  // namespace berth
