// Pollux's round where there are too many nodes or jobs for the genetic algorithm: sizes first,
// then places.
#include <algorithm>
#include <map>
#include <tuple>

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

/// Of waiting jobs that are alike the first is served first, and each takes its least: those behind
/// as many as all GPUs can hold get nothing, so they are left out.
std::vector<JobId> Pollux::within_reach(const View& view, const Plan& plan, PoolId pool) {
  using Alike = std::tuple<const GoodputTable*, std::int32_t, std::int32_t, std::int32_t>;
  std::map<Alike, std::int64_t> left;  // lookup only: its order is that of addresses
  const std::int64_t gpus = view.cluster.usable_gpus(pool);
  std::vector<JobId> jobs;
  for (const JobId job : pools_[pool.value].jobs) {
    if (plan.holds(job)) {
      jobs.push_back(job);
      continue;
    }
    const std::int32_t least = book_.least(job);
    const Alike kind{&book_.table(view, job, pool), least, book_.most(job), book_.range(job).most};
    std::int64_t& room = left.try_emplace(kind, gpus / std::max(1, least)).first->second;
    if (room-- > 0) jobs.push_back(job);
  }
  return jobs;
}

bool Pollux::optimise_by_filling(const View& view, Plan& plan, PoolId pool) {
  const std::vector<JobId> considered = within_reach(view, plan, pool);
  const std::int32_t largest = view.cluster.largest_node(pool);
  std::int64_t gpus = view.cluster.usable_gpus(pool);
  const std::int32_t fair = fair_share(view, pool);
  std::vector<FillJob> jobs;
  for (const JobId job : considered) {
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
    if (jobs[j].sizes.empty()) sizes[j] = plan.gpus_of(considered[j]);
  }
  keep_what_gains_little(view, plan, considered, pool, sizes);
  std::vector<SizeWish> wishes;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (sizes[j] != plan.gpus_of(considered[j])) wishes.push_back({considered[j], pool, sizes[j]});
  }
  return resizer_.apply(view, plan, wishes, Repack::Nobody);
}

/// Growth that a restart eats up is undone; so is shrinking that nobody needs.
void Pollux::keep_what_gains_little(const View& view, const Plan& plan, std::span<const JobId> jobs,
                                    PoolId pool, std::vector<std::int32_t>& sizes) {
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
