#include "policies/agents/grants.h"

#include <algorithm>

#include "placements/quiet_match.h"
#include "placements/topology.h"

namespace berth::agents {

namespace {

/// What a server has for a gang that is kept to a pod or a cell.
class BoundedRoom final : public ServerRoom {
 public:
  BoundedRoom(const ClusterState& state, const Shape& shape, const Pods& pods, const Bounds& bounds)
      : state_(state), shape_(shape), pods_(pods), bounds_(bounds) {}
  /// Otherwise all free devices are room, and looking for them is faster without asking.
  [[nodiscard]] bool is_limited() const noexcept {
    return bounds_.pod != pods_.root() || !bounds_.cell.empty() || shape_.needs_side_resources();
  }
  [[nodiscard]] std::int32_t room(NodeId node) const override {
    if (bounds_.pod != pods_.root() && pods_.pod_of(node) != bounds_.pod) return 0;
    if (!bounds_.cell.empty() && !std::ranges::binary_search(bounds_.cell, node)) return 0;
    return state_.room_on(node, shape_);
  }

 private:
  const ClusterState& state_;
  const Shape& shape_;
  const Pods& pods_;
  const Bounds& bounds_;
};

}  // namespace

std::optional<Match> Grants::find(const ClusterState& state, const Shape& shape, PoolId pool,
                                  const Bounds& bounds) {
  const BoundedRoom room(state, shape, arbiters_.pods(), bounds);
  const MatchQuery query{.pool = pool,
                         .gpus = shape.gpus,
                         .max_level = bounds.max_level,
                         .room = room.is_limited() ? &room : nullptr};
  return find_quiet(*state.topology(), state.buses(), shape.bus_milli, query, parts_);
}

std::optional<Match> Grants::find_accepted(const View& view, JobId job, PodId pod, PoolId pool) {
  const ClusterState& state = view.cluster;
  const Shape& shape = view.shape(job);
  if (!arbiters_.pods().may_hold(state, pod, pool, shape)) return std::nullopt;
  const Level level = agents_.accepted_level(view, job, pool, *state.topology());
  return find(state, shape, pool, {.pod = pod, .max_level = level});
}

std::span<const Slice> Grants::slices_of(const Match& match) {
  slices_.clear();
  append_slices(match.parts, slices_);
  return slices_;
}

bool Grants::start(Pass& pass, JobId job, PodId pod) {
  return std::ranges::any_of(pass.view.shape(job).pools, [&](PoolId pool) {
    return start_in(pass, job, pod, pool, options_.lease);
  });
}

bool Grants::start_in(Pass& pass, JobId job, PodId pod, PoolId pool, Duration lease) {
  const Shape& shape = pass.view.shape(job);
  const ClusterState& state = pass.plan.cluster();
  if (!has_places(state, shape)) return start_by_placement(pass, job, pool, lease, Reason::Order);
  const auto match = find_accepted(pass.view, job, pod, pool);
  return match && start_at(pass, job, pool, *match, lease, Reason::Order);
}

bool Grants::start_at(Pass& pass, JobId job, PoolId pool, const Match& match, Duration lease,
                      Reason reason) {
  const auto slices = slices_of(match);
  if (!pass.plan.try_start_on(job, pool, slices, reason)) return false;
  agents_.note_wait(pass.view, job, match.level);
  arbiters_.grant(pass.view, job, arbiters_.pods().pod_of(slices), lease);
  return true;
}

bool Grants::start_by_placement(Pass& pass, JobId job, PoolId pool, Duration lease, Reason reason) {
  if (!pass.plan.try_start_in(pool, job, reason)) return false;
  arbiters_.grant(pass.view, job, arbiters_.pods().root(), lease);
  return true;
}

Holding Grants::holding_of(const Plan& plan, JobId job) const {
  return {job, plan.pool_of(job), arbiters_.pod_of(job), devices_of(plan, job)};
}

bool Grants::restart(Pass& pass, const Holding& holding, Duration lease) {
  const Shape& shape = pass.view.shape(holding.job);
  if (!has_places(pass.plan.cluster(), shape))
    return start_by_placement(pass, holding.job, holding.pool, lease, Reason::Lease);
  if (pass.plan.try_start_on(holding.job, holding.pool, holding.slices, Reason::Lease)) {
    arbiters_.grant(pass.view, holding.job, holding.pod, lease);
    return true;
  }
  const auto match = find_accepted(pass.view, holding.job, holding.pod, holding.pool);
  return match && start_at(pass, holding.job, holding.pool, *match, lease, Reason::Lease);
}

}  // namespace berth::agents
