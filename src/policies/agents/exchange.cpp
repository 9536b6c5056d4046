#include "policies/agents/exchange.h"

#include <algorithm>
#include <tuple>

namespace berth::agents {

namespace {

constexpr std::size_t kPodsAsked = 3;  // for one head; the root sees all of them anyway

}  // namespace

void Exchange::hold(Pass& pass) {
  collect_heads(pass.view);
  summarise_all(pass.plan.cluster());
  for (const Head& head : heads_) {
    auto& waiting = arbiters_[head.pod].waiting;
    auto found = waiting.find(head.kind);
    while (found != waiting.end() && start_elsewhere(pass, *found->second.begin(), head.pod))
      found = waiting.find(head.kind);
    if (found != waiting.end()) send_to_idle_pod(pass.view, *found->second.begin(), head.pod);
  }
}

void Exchange::collect_heads(const View& view) {
  heads_.clear();
  for (std::uint32_t i = 0; i < arbiters_.pods().size(); ++i) {
    for (const auto& [kind, jobs] : arbiters_[PodId{i}].waiting) {
      const JobId head = *jobs.begin();
      const Bidder bidder = agents_.bidder_of(view, head, view.shape(head).pools.front());
      heads_.push_back({agents_.hardship_of(bidder), head, kind, PodId{i}});
    }
  }
  std::ranges::sort(heads_, [](const Head& a, const Head& b) {
    return std::tuple(-a.hardship, a.job) < std::tuple(-b.hardship, b.job);
  });
}

void Exchange::summarise(const ClusterState& state, PodId pod) {
  auto& of_pod = summaries_[pod.value];
  of_pod.resize(state.pools());
  for (std::uint32_t pool = 0; pool < of_pod.size(); ++pool)
    of_pod[pool] = arbiters_.pods().summary(state, pod, PoolId{pool});
}

void Exchange::summarise_all(const ClusterState& state) {
  summaries_.resize(arbiters_.pods().size());
  for (std::uint32_t i = 0; i < summaries_.size(); ++i) summarise(state, PodId{i});
}

/// Pods with a server that has room for it, the emptiest first.
void Exchange::collect_offers(const Shape& shape, PodId from) {
  offers_.clear();
  for (std::uint32_t i = 0; i < summaries_.size(); ++i) {
    std::int64_t free = 0;
    for (const PoolId pool : shape.pools) {
      const PodSummary& summary = summaries_[i][pool.value];
      if (summary.largest_server >= shape.gpus) free = std::max(free, summary.free);
    }
    if (free > 0 && PodId{i} != from) offers_.push_back({free, PodId{i}});
  }
  std::ranges::sort(offers_, [](const Offer& a, const Offer& b) {
    return std::tuple(-a.free, a.pod) < std::tuple(-b.free, b.pod);
  });
  offers_.resize(std::min(offers_.size(), kPodsAsked));
}

bool Exchange::start_elsewhere(Pass& pass, JobId job, PodId from) {
  const PodId root = arbiters_.pods().root();
  if (!pass.plan.has_room(pass.view.shape(job))) return false;
  collect_offers(pass.view.shape(job), from);
  const auto takes = [&](const Offer& offer) { return grants_.start(pass, job, offer.pod); };
  if (!std::ranges::any_of(offers_, takes) && !grants_.start(pass, job, root)) return false;
  if (arbiters_.pod_of(job) == root)
    summarise_all(pass.plan.cluster());
  else
    summarise(pass.plan.cluster(), arbiters_.pod_of(job));
  return true;
}

void Exchange::send_to_idle_pod(const View& view, JobId job, PodId from) {
  if (arbiters_[from].waiting_jobs < 2) return;  // it would only change places
  for (std::uint32_t i = 0; i < arbiters_.pods().size(); ++i) {
    const PodId pod{i};
    if (arbiters_[pod].waiting_jobs > 0 || !arbiters_.pods().could_hold(pod, view.shape(job)))
      continue;
    arbiters_.move_to(view, job, pod);
    return;
  }
}

}  // namespace berth::agents
