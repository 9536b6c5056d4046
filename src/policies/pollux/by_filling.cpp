// Pollux's round on clusters too large for the genetic algorithm: sizes first, then places.
#include <algorithm>

#include "policies/pollux/pollux.h"
#include "policies/pollux/water_fill.h"

namespace berth::pollux {

namespace {

constexpr double kWorthAMove = 1.05;

/// 1, 2, 4, … within the job's range, its ends and its present size.
std::vector<std::int32_t> sizes_between(std::int32_t least, std::int32_t most, std::int32_t now) {
  std::vector<std::int32_t> sizes;
  for (std::int32_t size = 1; size < most; size *= 2) {
    if (size >= least) sizes.push_back(size);
  }
  sizes.insert(sizes.end(), {least, most});
  if (now > 0) sizes.push_back(now);
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

}  // namespace

bool Pollux::optimise_by_filling(const View& view, Plan& plan, PoolId pool) {
  const PoolState& state = pools_[pool.value];
  const std::int32_t largest = view.cluster.largest_node(pool);
  std::int64_t gpus = view.cluster.usable_gpus(pool);
  const std::int32_t fair = fair_share(view, pool);
  std::vector<FillJob> jobs;
  for (const JobId job : state.jobs) {
    FillJob& fill = jobs.emplace_back();
    if (plan.holds(job) && book_.is_pinned(view, job)) {
      gpus -= plan.gpus_of(job);
      continue;
    }
    fill.sizes = sizes_between(book_.least(job), book_.most(job), plan.gpus_of(job));
    const double share = fair_goodput(view, job, pool, fair);
    const GoodputTable& table = book_.table(view, job, pool);
    for (const std::int32_t size : fill.sizes)
      fill.utility.push_back(table.goodput(size, size > largest) / share);
  }
  std::vector<std::int32_t> sizes = water_fill(jobs, gpus, options_.p);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (jobs[j].sizes.empty()) sizes[j] = plan.gpus_of(state.jobs[j]);
  }
  keep_what_gains_little(view, plan, pool, sizes);
  std::vector<SizeWish> wishes;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (sizes[j] != plan.gpus_of(state.jobs[j])) wishes.push_back({state.jobs[j], pool, sizes[j]});
  }
  return resizer_.apply(view, plan, wishes, Repack::Nobody);
}

/// Growth that a restart eats up is undone; so is shrinking that nobody needs.
void Pollux::keep_what_gains_little(const View& view, const Plan& plan, PoolId pool,
                                    std::vector<std::int32_t>& sizes) {
  const auto& jobs = pools_[pool.value].jobs;
  const std::int32_t largest = view.cluster.largest_node(pool);
  std::int64_t spare = view.cluster.usable_gpus(pool);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::int32_t now = plan.gpus_of(jobs[j]);
    if (now > 0 && sizes[j] > now) {
      const GoodputTable& table = book_.table(view, jobs[j], pool);
      const double grown = table.goodput(sizes[j], sizes[j] > largest);
      const double stays = table.goodput(now, plan.slices(jobs[j]).size() > 1);
      if (grown * book_.restart_factor(view, jobs[j]) < kWorthAMove * stays) sizes[j] = now;
    }
    spare -= sizes[j];
  }
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::int32_t now = plan.gpus_of(jobs[j]);
    if (sizes[j] >= now || now - sizes[j] > spare) continue;
    spare -= now - sizes[j];
    sizes[j] = now;
  }
}

}  // namespace berth::pollux
