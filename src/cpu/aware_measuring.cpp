// Live: jobs that tell how fast they are get to know their sweet point by trying.
#include <algorithm>

#include "cpu/aware_tuner.h"

namespace berth {

void AwareTuner::hear_measured(const Plan& plan, Time now) {
  news_.clear();
  options_.measured->take_changed(news_);
  for (const JobId job : news_) beliefs_.forget_measured(job);
  if (now >= next_check_) news_.insert(news_.end(), probing_.begin(), probing_.end());
  for (const JobId job : news_) {
    if (!plan.holds(job)) continue;
    for (const Slice& slice : plan.slices(job)) nodes_.push_back(slice.node);
  }
}

/// A job of which nothing is known seems to need no cores at all. One that says what it does shows
/// soon what it needs; whoever is silent must not run on a single core for ever.
std::span<const double> AwareTuner::speeds_of(const Plan& plan, JobId job, NodeId node) {
  const std::span<const double> known = beliefs_.speeds(plan, job);
  const bool says_nothing = known.size() < 2 || known[1] >= 1;
  if (options_.measured == nullptr || !says_nothing || beliefs_.is_measured(plan, job))
    return known;
  const std::int32_t share = bind_share(server_of(plan, node), 1);
  const auto [entry, is_new] = even_shares_.try_emplace(share);
  if (is_new) {
    for (std::int32_t cores = 0; cores <= share; ++cores)
      entry->second.push_back(static_cast<double>(cores) / share);
  }
  return entry->second;
}

/// Within what it has and what nobody holds: the others are not touched. Beside others on a GPU a
/// speed says nothing about cores, and the workers of a gang would have to change as one.
void AwareTuner::bind_to_probes(Plan& plan) {
  if (options_.measured == nullptr) return;
  for (const auto& [job, granted] : grants_) {
    probing_.erase(job);
    if (!plan.jobs().is_running(job) || plan.slices(job).size() != 1) continue;
    if (has_device_company(plan, job)) continue;
    const Slice slice = plan.slices(job).front();
    const std::int64_t free = std::max<std::int64_t>(0, free_milli(plan, slice.node));
    const std::int64_t within_reach = (granted + free / slice.gpus) / 1000;
    const auto cores = options_.measured->probe(job, static_cast<std::int32_t>(within_reach));
    if (!cores) continue;
    give_cores(plan, job, *cores * 1000);
    probing_.insert(job);
  }
}

}  // namespace berth
