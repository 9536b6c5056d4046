#include "policies/common/make_way.h"

#include <algorithm>
#include <tuple>

#include "placements/node_picker.h"
#include "policies/kit/pass.h"

namespace berth {

bool has_room_elsewhere(const View& view, JobId job, PoolId was_in) {
  if (view.cluster.mode() != ClusterState::Mode::Count) return false;
  const Shape& shape = view.shape(job);
  return std::ranges::any_of(shape.pools, [&](PoolId pool) {
    return pool != was_in && view.cluster.free_gpus(pool) >= shape.gpus;
  });
}

void WayMaker::add(const View& view, JobId job) {
  // Who was granted devices in this very plan has done nothing there yet.
  const bool runs = view.jobs.is_running(job);
  const Duration since = runs ? view.now - view.jobs.last_start[job] : Duration::zero();
  candidates_.push_back({since.count() * view.gpus(job), job});
}

bool WayMaker::try_start(Plan& plan, PoolId pool, JobId job, Reason reason) {
  displaced_.clear();
  if (candidates_.empty() || plan.cluster().mode() == ClusterState::Mode::Count) return false;
  order_.clear();
  steps_.clear();
  const Shape& shape = plan.shape(job);
  const bool is_anywhere = shape.locality == Locality::Relaxed || shape.is_fraction();
  const bool is_one_node = !is_anywhere && plan.waits_for_fewest_nodes() &&
                           fewest_possible(plan.cluster(), shape, pool) <= 1;
  if (!is_anywhere) {
    add_up_nodes(plan);
    // Most tries end here, before anything is put in order.
    if (is_one_node && !keep_to_roomy_nodes(plan, shape)) return false;
  }
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return a.lost != b.lost ? a.lost < b.lost : b.job < a.job;
  });
  if (is_anywhere) {
    for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
      order_.push_back(i);
      steps_.push_back(order_.size());
    }
    return try_in_order(plan, pool, job, reason);
  }
  find_sites(plan, shape);
  if (try_one_node(plan, pool, job, reason)) return true;
  if (is_one_node) return false;
  std::ranges::sort(sites_, [](const Site& a, const Site& b) {
    return std::tuple(-a.room, a.lost, a.node) < std::tuple(-b.room, b.lost, b.node);
  });
  in_order_.assign(candidates_.size(), false);
  for (const Site& site : sites_) {
    for (std::uint32_t part = site.first; part < site.last; ++part) {
      const std::uint32_t candidate = parts_[part].candidate;
      if (!in_order_[candidate]) order_.push_back(candidate);
      in_order_[candidate] = true;
    }
    steps_.push_back(order_.size());
  }
  return try_in_order(plan, pool, job, reason);
}

WayMaker::Gain WayMaker::gain_of(const Slice& slice, const Shape& held) {
  const std::int64_t workers = std::max(1, slice.gpus);
  return {.gpus = slice.gpus,
          .cpus_milli = workers * held.cpus_milli_per_gpu,
          .memory_mib = workers * held.memory_mib_per_gpu};
}

std::int64_t WayMaker::room_on(const Plan& plan, NodeId node, const Shape& shape,
                               const Gain& gain) {
  const ClusterState& state = plan.cluster();
  const Node& described = state.cluster().nodes[node.value];
  std::int64_t room = state.free_on(node) + gain.gpus;
  if (shape.cpus_milli_per_gpu > 0 && described.cpus_milli > 0)
    room =
        std::min(room, (state.free_cpus_milli(node) + gain.cpus_milli) / shape.cpus_milli_per_gpu);
  if (shape.memory_mib_per_gpu > 0 && described.memory_mib > 0)
    room =
        std::min(room, (state.free_memory_mib(node) + gain.memory_mib) / shape.memory_mib_per_gpu);
  return room;
}

/// What all candidates hold, node by node, in no order.
void WayMaker::add_up_nodes(const Plan& plan) {
  for (const NodeId node : nodes_) sums_[node.value] = {};
  nodes_.clear();
  sums_.resize(plan.cluster().cluster().nodes.size());
  for (const Candidate& candidate : candidates_) {
    const Shape& held = plan.shape(candidate.job);
    for (const Slice& slice : plan.slices(candidate.job)) {
      NodeSum& sum = sums_[slice.node.value];
      if (sum.parts++ == 0) nodes_.push_back(slice.node);
      sum.gain += gain_of(slice, held);
    }
  }
}

/// Candidates beside those nodes that could hold the whole gang are of no use to one that wants a
/// node. False: there is no such node.
bool WayMaker::keep_to_roomy_nodes(const Plan& plan, const Shape& shape) {
  const auto is_roomy = [&](NodeId node) {
    return room_on(plan, node, shape, sums_[node.value].gain) >= shape.gpus;
  };
  const auto kept = std::ranges::partition(nodes_, is_roomy);
  for (const NodeId node : kept) sums_[node.value] = {};
  nodes_.erase(kept.begin(), kept.end());
  if (nodes_.empty()) return false;
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    return std::ranges::none_of(plan.slices(candidate.job), [&](const Slice& slice) {
      return sums_[slice.node.value].parts > 0;
    });
  });
  return true;
}

void WayMaker::find_sites(const Plan& plan, const Shape& shape) {
  std::ranges::sort(nodes_);
  sites_.clear();
  std::uint32_t first = 0;
  for (const NodeId node : nodes_) {
    NodeSum& sum = sums_[node.value];
    sites_.push_back({.node = node,
                      .room = room_on(plan, node, shape, sum.gain),
                      .lost = 0,
                      .first = first,
                      .last = first});
    sum.site = static_cast<std::uint32_t>(sites_.size() - 1);
    first += sum.parts;
  }
  parts_.resize(first);
  for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
    const Shape& held = plan.shape(candidates_[i].job);
    for (const Slice& slice : plan.slices(candidates_[i].job)) {
      const NodeSum& sum = sums_[slice.node.value];
      if (sum.parts == 0) continue;
      Site& site = sites_[sum.site];
      parts_[site.last++] = {slice.node, i, gain_of(slice, held)};
      site.lost += candidates_[i].lost;
    }
  }
}

bool WayMaker::choose_on(const Plan& plan, const Shape& shape, const Site& site) {
  if (site.room < shape.gpus) return false;
  chosen_.clear();
  Gain gain;
  std::uint32_t part = site.first;
  for (; room_on(plan, site.node, shape, gain) < shape.gpus; ++part) {
    gain += parts_[part].gain;
    chosen_.push_back(part);
  }
  // The last one was needed; of those before it, who loses most is spared first.
  for (std::size_t i = chosen_.size(); i-- > 0;) {
    const Gain& own = parts_[chosen_[i]].gain;
    const Gain without{.gpus = gain.gpus - own.gpus,
                       .cpus_milli = gain.cpus_milli - own.cpus_milli,
                       .memory_mib = gain.memory_mib - own.memory_mib};
    if (room_on(plan, site.node, shape, without) < shape.gpus) continue;
    gain = without;
    chosen_.erase(chosen_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::uint32_t& each : chosen_) each = parts_[each].candidate;
  return true;
}

bool WayMaker::try_one_node(Plan& plan, PoolId pool, JobId job, Reason reason) {
  const Shape& shape = plan.shape(job);
  const Site* best = nullptr;
  std::int64_t least = 0;
  std::size_t fewest = 0;
  for (const Site& site : sites_) {  // by node: the lowest of equals stays
    if (!choose_on(plan, shape, site)) continue;
    std::int64_t lost = 0;
    for (const std::uint32_t candidate : chosen_) lost += candidates_[candidate].lost;
    if (best != nullptr && std::tuple(least, fewest) <= std::tuple(lost, chosen_.size())) continue;
    best = &site;
    least = lost;
    fewest = chosen_.size();
  }
  if (best == nullptr || !choose_on(plan, shape, *best)) return false;
  order_ = chosen_;
  if (!attempt(plan, [&] { return try_without(plan, pool, job, order_.size(), reason); })) {
    order_.clear();
    return false;
  }
  spare(plan, pool);
  return true;
}

bool WayMaker::try_without(Plan& plan, PoolId pool, JobId job, std::size_t count, Reason reason) {
  taken_.resize(std::max(taken_.size(), count));
  for (std::size_t i = 0; i < count; ++i) {
    const JobId victim = candidates_[order_[i]].job;
    const auto slices = plan.slices(victim);
    taken_[i].job = victim;
    taken_[i].slices.assign(slices.begin(), slices.end());
    plan.preempt(victim, reason);
  }
  taken_.resize(count);
  return plan.try_start_in(pool, job);
}

/// The shortest beginning of the order without which the job has room. More room never hurts, so it
/// is found by halves.
bool WayMaker::try_in_order(Plan& plan, PoolId pool, JobId job, Reason reason) {
  const Plan::Mark mark = plan.mark();
  const auto is_enough = [&](std::size_t step) {
    return attempt(plan, [&] { return try_without(plan, pool, job, steps_[step], reason); });
  };
  std::size_t too_few = 0;  // steps; not even none were enough, or nobody would have asked
  std::size_t enough = 1;
  for (;; enough = std::min(enough * 2, steps_.size())) {
    if (is_enough(enough - 1)) break;
    if (enough == steps_.size()) return false;
    too_few = enough;
  }
  while (enough - too_few > 1) {
    plan.rollback(mark);
    const std::size_t middle = (too_few + enough) / 2;
    (is_enough(middle - 1) ? enough : too_few) = middle;
  }
  if (!plan.holds(job) && !is_enough(enough - 1)) return false;
  spare(plan, pool);
  return true;
}

/// Who is not in the way keeps its devices; whoever loses most is looked at first.
void WayMaker::spare(Plan& plan, PoolId pool) {
  for (std::size_t i = taken_.size(); i-- > 0;) {
    Taken& taken = taken_[i];
    const bool kept =
        plan.shape(taken.job).is_fraction() && plan.cluster().tracks_devices()
            ? plan.try_share_on(taken.job, pool, taken.slices, static_cast<int>(kMaxSharers))
            : plan.try_start_on(taken.job, pool, taken.slices);
    if (kept) taken.slices.clear();
  }
  for (const Taken& taken : taken_) {
    if (!taken.slices.empty()) displaced_.push_back(taken.job);
  }
}

}  // namespace berth
