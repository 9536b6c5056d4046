// Best-effort jobs closer together, where distance costs speed.
#include <algorithm>
#include <bit>

#include "policies/chronus/chronus.h"
#include "policies/chronus/local_search.h"
#include "policies/kit/beliefs.h"

namespace berth::chronus {

namespace {

constexpr std::size_t kWaitingLooked = 8;  // waiting jobs for which others may make room

std::vector<Part> parts_of(std::span<const Slice> slices) {
  std::vector<Part> parts;
  for (const Slice& slice : slices) parts.push_back({slice.node.value, slice.gpus});
  return parts;
}

/// Any of the free devices; false if they are not as many.
bool take_parts(std::vector<std::uint64_t>& free, const std::vector<Part>& parts,
                std::vector<Slice>& slices) {
  slices.clear();
  for (const Part& part : parts) {
    Slice slice{.node = NodeId{part.server}, .gpus = part.gpus, .devices = 0};
    std::uint64_t& here = free[part.server];
    for (std::int32_t i = 0; i < part.gpus; ++i, here &= here - 1)
      slice.devices |= here & (~here + 1);
    if (std::popcount(slice.devices) != part.gpus) return false;
    slices.push_back(slice);
  }
  return true;
}

}  // namespace

Resident Chronus::resident(const View& view, const Plan& plan, JobId job, PoolId pool) const {
  const std::int32_t gpus = view.gpus(job);
  const std::int32_t largest = view.cluster.largest_node(pool);
  const double close = believed_rate(view, job, pool, gpus);
  return {.job = job,
          .gpus = gpus,
          .fewest = (gpus + largest - 1) / largest,
          .spread_speed = std::min(1.0, believed_rate(view, job, pool, gpus, Level::Rack) / close),
          .is_free_to_move = plan.holds(job) && view.jobs.is_waiting(job),
          .at = parts_of(plan.slices(job))};
}

std::vector<Resident> Chronus::residents(const View& view, const Plan& plan, PoolId pool) const {
  std::vector<Resident> all;
  for (const JobId job : best_effort_) {
    if (plan.pool_of(job) == pool && !view.shape(job).is_fraction())
      all.push_back(resident(view, plan, job, pool));
  }
  return all;
}

std::vector<Resident> Chronus::candidates(const View& view, const Plan& plan, PoolId pool) const {
  std::vector<OrderKey> heads;
  for (const ShapeId shape : waiting_.active()) {
    const Shape& one = view.shapes[shape];
    if (!one.is_fraction() && std::ranges::find(one.pools, pool) != one.pools.end())
      heads.push_back(waiting_.top(shape));
  }
  std::ranges::sort(heads);
  if (heads.size() > kWaitingLooked) heads.resize(kWaitingLooked);
  std::vector<Resident> all;
  for (const OrderKey& head : heads) all.push_back(resident(view, plan, head.job, pool));
  return all;
}

void Chronus::improve(const View& view, Plan& plan, PoolId pool) {
  if (counts_ || !view.believed().effects().locality || options_.search_steps == 0) return;
  const std::vector<Resident> before = residents(view, plan, pool);
  const auto is_spread = [](const Resident& job) {
    return static_cast<std::int32_t>(job.at.size()) > job.fewest;
  };
  if (std::ranges::none_of(before, is_spread)) return;
  const Cluster& cluster = view.cluster.cluster();
  std::vector<std::uint64_t> free(cluster.nodes.size());
  std::vector<std::int32_t> count(cluster.nodes.size());
  for (std::uint32_t i = 0; i < free.size(); ++i) {
    if (cluster.nodes[i].pool != pool) continue;
    free[i] = plan.cluster().free_mask(NodeId{i}) & ~(padding_.empty() ? 0 : padding_[i]);
    count[i] = std::popcount(free[i]);
  }
  LocalSearch search{count, before, candidates(view, plan, pool), options_.move_cost};
  if (search.run(options_.search_steps) == 0) return;
  carry_out(view, plan, pool, before, search, std::move(free));
}

/// All of it or nothing: a place may lack cores or memory, of which the search knows nothing.
void Chronus::carry_out(const View& view, Plan& plan, PoolId pool,
                        const std::vector<Resident>& before, const LocalSearch& search,
                        std::vector<std::uint64_t> free) {
  std::vector<const Resident*> comers;
  std::vector<JobId> leavers;
  const Plan::Mark mark = plan.mark();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Resident& now = search.residents()[i];
    if (now.at == before[i].at) continue;
    for (const Slice& slice : plan.slices(now.job)) free[slice.node.value] |= slice.devices;
    plan.preempt(now.job, Reason::Locality);
    leavers.push_back(now.job);
    if (!now.at.empty()) comers.push_back(&now);
  }
  for (const Resident& job : search.waiting()) {
    if (!job.at.empty()) comers.push_back(&job);
  }
  for (const Resident* job : comers) {
    if (take_parts(free, job->at, slices_) &&
        plan.try_start_on(job->job, pool, slices_, Reason::Locality))
      continue;
    plan.rollback(mark);
    return;
  }
  for (const JobId job : leavers) set_holding(view, job, false);
  for (const Resident* job : comers) {
    dequeue(view, job->job);
    set_holding(view, job->job, true);
  }
}

}  // namespace berth::chronus
