#include "policies/andreas/seats.h"

#include <algorithm>
#include <utility>

#include "base/device_mask.h"
#include "policies/kit/pass.h"

namespace berth::andreas {

void Seats::begin(std::size_t jobs, std::size_t nodes) {
  at_ = Column<JobId, std::uint32_t>(jobs);
  users_ = Column<NodeId, std::int32_t>(nodes);
  idle_since_ = Column<NodeId, Time>(nodes, kTimeZero);
}

void Seats::give_running(JobId job, Seat seat) {
  for (const Share& share : seat.shares) {
    ++users_[NodeId{share.node}];
    idle_since_[NodeId{share.node}] = kNever;
  }
  seated_.push_back(job);
  at_[job] = static_cast<std::uint32_t>(seated_.size());
  seats_.insert_or_assign(job, std::move(seat));
}

void Seats::give(JobId job, Seat seat) {
  give_running(job, std::move(seat));
  pending_.push_back(job);
}

void Seats::leave(JobId job) {
  for (const Share& share : of(job).shares) --users_[NodeId{share.node}];
  const std::uint32_t at = at_[job] - 1;
  seated_[at] = seated_.back();
  at_[seated_[at]] = at + 1;
  seated_.pop_back();
  at_[job] = 0;
  seats_.erase(job);
  std::erase(pending_, job);
}

void Seats::release(Plan& plan, JobId job) {
  if (plan.holds(job)) {
    // Where it keeps some of its devices it is resized or stays instead of being moved.
    released_[job] = devices_of(plan, job);
    plan.preempt(job, Reason::Power);
  }
  leave(job);
}

void Seats::sort_pending() { std::ranges::sort(pending_); }

void Seats::start(Plan& plan) {
  std::erase_if(pending_, [&](JobId job) { return try_start(plan, job); });
}

bool Seats::try_start(Plan& plan, JobId job) {
  const Seat& own = of(job);
  slices_.clear();
  // All or nothing: until its last node has booted a gang holds nothing, though others leave its
  // seat free.
  for (const Share& share : own.shares) {
    if (!plan.cluster().is_up(NodeId{share.node})) return false;
    const Slice slice = choose_devices(plan, job, share);
    if (slice.gpus < share.gpus) return false;
    slices_.push_back(slice);
  }
  const PoolId pool = plan.cluster().cluster().nodes[own.shares.front().node].pool;
  return plan.try_start_on(job, pool, slices_, Reason::Power);
}

/// Those it held on this node before, as far as they are free, then the lowest.
Slice Seats::choose_devices(const Plan& plan, JobId job, const Share& share) const {
  const NodeId node{share.node};
  const std::uint64_t free = plan.cluster().free_mask(node);
  std::uint64_t own = 0;
  if (const auto found = released_.find(job); found != released_.end()) {
    for (const Slice& slice : found->second) {
      if (slice.node == node) own = slice.devices & free;
    }
  }
  const std::uint64_t kept = DeviceMask{own}.lowest(share.gpus);
  const std::int32_t missing = share.gpus - DeviceMask{kept}.size();
  const std::uint64_t devices = kept | DeviceMask{free & ~own}.lowest(missing);
  return {.node = node, .gpus = DeviceMask{devices}.size(), .devices = devices};
}

Time Seats::idle_since(NodeId node, Time now) {
  if (idle_since_[node] == kNever) idle_since_[node] = now;
  return idle_since_[node];
}

}  // namespace berth::andreas
