#include "policies/chronus/closeness.h"

#include <algorithm>
#include <bit>
#include <span>

#include "base/device_mask.h"
#include "policies/kit/beliefs.h"

namespace berth::chronus {

namespace {

constexpr std::size_t kWaitingLooked = 8;  // waiting jobs for which others may make room

Resident resident(const Pass& pass, JobId job, PoolId pool) {
  const View& view = pass.view;
  const std::int32_t gpus = view.gpus(job);
  const std::int32_t largest = view.cluster.largest_node(pool);
  const double close = believed_rate(view, job, pool, gpus);
  std::vector<Part> parts;
  for (const Slice& slice : pass.plan.slices(job)) parts.push_back({slice.node.value, slice.gpus});
  return {.job = job,
          .gpus = gpus,
          .fewest = (gpus + largest - 1) / largest,
          .spread_speed = std::min(1.0, believed_rate(view, job, pool, gpus, Level::Rack) / close),
          .is_free_to_move = pass.plan.holds(job) && view.jobs.is_waiting(job),
          .at = std::move(parts)};
}

}  // namespace

std::vector<Resident> Closeness::residents(const Pass& pass, PoolId pool) const {
  std::vector<Resident> all;
  for (const JobId job : roster_.best_effort())
    if (pass.plan.pool_of(job) == pool && !pass.view.shape(job).is_fraction())
      all.push_back(resident(pass, job, pool));
  return all;
}

/// The first few that wait for the pool, one of each shape.
std::vector<Resident> Closeness::candidates(const Pass& pass, PoolId pool) const {
  const WaitingByShape& waiting = roster_.waiting();
  std::vector<OrderKey> heads;
  for (const ShapeId id : waiting.active()) {
    const Shape& shape = pass.view.shapes[id];
    if (!shape.is_fraction() && std::ranges::find(shape.pools, pool) != shape.pools.end())
      heads.push_back(waiting.top(id));
  }
  std::ranges::sort(heads);
  if (heads.size() > kWaitingLooked) heads.resize(kWaitingLooked);
  std::vector<Resident> all;
  for (const OrderKey& head : heads) all.push_back(resident(pass, head.job, pool));
  return all;
}

void Closeness::improve(Pass& pass, PoolId pool) {
  const View& view = pass.view;
  if (is_counted(view) || !view.believed().effects().locality || options_.search_steps == 0) return;
  const std::vector<Resident> before = residents(pass, pool);
  if (std::ranges::none_of(before, &Resident::is_spread)) return;
  const auto& nodes = view.cluster.cluster().nodes;
  std::vector<std::int32_t> free(nodes.size());  // by server of the search, which is a node
  for (std::uint32_t i = 0; i < free.size(); ++i)
    if (nodes[i].pool == pool) free[i] = std::popcount(placing_.lendable(pass.plan, NodeId{i}));
  LocalSearch search{std::move(free), before, candidates(pass, pool), options_.move_cost};
  if (search.run(options_.search_steps) > 0) carry_out(pass, pool, before, search);
}

/// All of it or nothing: a place may lack cores or memory, of which the search knows nothing.
void Closeness::carry_out(Pass& pass, PoolId pool, const std::vector<Resident>& before,
                          const LocalSearch& search) {
  std::vector<const Resident*> comers;
  std::vector<JobId> leavers;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Resident& now = search.residents()[i];
    if (now.at == before[i].at) continue;
    leavers.push_back(now.job);
    if (!now.at.empty()) comers.push_back(&now);
  }
  for (const Resident& job : search.waiting())
    if (!job.at.empty()) comers.push_back(&job);
  const auto start = [&](const Resident& job) {
    std::vector<Slice> slices;
    for (const Part& part : job.at) {
      const DeviceMask free{placing_.lendable(pass.plan, NodeId{part.server})};
      if (free.size() < part.gpus) return false;
      slices.push_back({NodeId{part.server}, part.gpus, free.lowest(part.gpus)});
    }
    return pass.plan.try_start_on(job.job, pool, slices, Reason::Locality);
  };
  const bool is_done = pass.attempt([&] {
    for (const JobId job : leavers) pass.plan.preempt(job, Reason::Locality);
    return std::ranges::all_of(comers, [&](const Resident* job) { return start(*job); });
  });
  if (!is_done) return;
  for (const JobId job : leavers) roster_.note_waits(pass.view, job);
  for (const Resident* job : comers) roster_.note_holds(pass.view, job->job);
}

}  // namespace berth::chronus
