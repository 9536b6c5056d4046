#include "policies/bsbf/starter.h"

#include <algorithm>
#include <bit>

#include "base/device_mask.h"

namespace berth::bsbf {

namespace {

constexpr std::int32_t kJobsPerDevice = 2;

void set_sub_steps(Pass& pass, JobId job, std::int32_t sub_steps) {
  Terms terms = pass.plan.terms(job);
  terms.sub_steps = sub_steps;
  static_cast<void>(pass.plan.set_terms(job, terms));  // it holds nothing: always possible
}

}  // namespace

double length_alone(const View& view, JobId job) {
  return std::max(1e-6, to_seconds(view.estimated_left(job)));
}

bool Starter::try_alone(Pass& pass, JobId job) {
  const View& view = pass.view;
  const Shape& shape = view.shape(job);
  for (const PoolId pool : shape.pools) {
    const auto steps = newcomers_.steps_alone(view, view.jobs.kind[job], pool);
    if (!steps || view.cluster.free_gpus(pool) < shape.gpus) continue;
    set_sub_steps(pass, job, *steps);
    if (!pass.plan.try_start_in(pool, job)) continue;
    running_.add(pass, job);
    return true;
  }
  return false;
}

std::optional<std::int32_t> Starter::share(Pass& pass, JobId job, PoolId pool) {
  const View& view = pass.view;
  const std::int32_t gpus = view.shape(job).gpus;
  const std::int64_t free = view.cluster.free_gpus(pool);
  const std::int64_t out_of_reach = gpus - free - running_.occupancy().single(pool);
  if (out_of_reach > 0) return static_cast<std::int32_t>(out_of_reach);
  if (free >= gpus) return 0;  // enough devices, and yet it could not start on them
  begin_choice(view, job, pool);
  choice_.add_free(view.cluster, pool);
  if (rules_.choice == PartnerChoice::Best) {
    search_partners(view, job, pool, std::nullopt);
    add_partners(std::nullopt);
  } else {
    for (const NodeId node : running_.occupancy().nodes(pool)) {
      if (choice_.missing() == 0) break;
      add_first_fit(view, job, node);
    }
  }
  if (choice_.missing() > 0) return choice_.missing();
  if (commit(pass, job, pool)) return std::nullopt;
  return 0;
}

bool Starter::try_one_server(Pass& pass, JobId job, PoolId pool) {
  const View& view = pass.view;
  const std::int32_t gpus = view.shape(job).gpus;
  const std::int32_t largest = view.cluster.largest_node(pool);
  for (std::int32_t free = gpus; free <= largest; ++free) {
    if (!view.cluster.nodes_with(pool, free).empty()) return try_alone(pass, job);
  }
  if (gpus > largest) return false;
  servers_.clear();
  for (const NodeId node : running_.occupancy().nodes(pool)) {
    const std::int32_t room =
        view.cluster.free_on(node) + std::popcount(running_.occupancy().single_on(node));
    if (room >= gpus) servers_.emplace_back(room, node);
  }
  std::ranges::sort(servers_);
  return std::ranges::any_of(
      servers_, [&](const auto& server) { return try_server(pass, job, pool, server.second); });
}

bool Starter::try_server(Pass& pass, JobId job, PoolId pool, NodeId node) {
  begin_choice(pass.view, job, pool);
  choice_.add(node, pass.view.cluster.free_mask(node));
  if (rules_.choice == PartnerChoice::Best) {
    search_partners(pass.view, job, pool, node);
    add_partners(node);
  } else {
    add_first_fit(pass.view, job, node);
  }
  return choice_.missing() == 0 && commit(pass, job, pool);
}

void Starter::begin_choice(const View& view, JobId job, PoolId pool) {
  const auto alone = newcomers_.steps_alone(view, view.jobs.kind[job], pool);
  choice_.begin(view.shape(job).gpus, alone.value_or(1));
}

/// The first devices of a node with memory enough, as many as are missing.
void Starter::add_first_fit(const View& view, JobId job, NodeId node) {
  std::uint64_t devices = 0;
  for (const std::int32_t device : DeviceMask{running_.occupancy().single_on(node)}) {
    if (std::popcount(devices) == choice_.missing()) break;
    const std::int64_t free = view.cluster.free_memory_mib(node, device);
    const auto steps = newcomers_.steps_beside(view, view.jobs.kind[job], free);
    if (!steps) continue;
    choice_.need_steps(*steps);
    devices |= std::uint64_t{1} << static_cast<unsigned>(device);
  }
  choice_.add(node, devices);
}

/// Partners for what is still missing, on one server only if that is given.
void Starter::search_partners(const View& view, JobId job, PoolId pool,
                              std::optional<NodeId> only) {
  const PartnerSearch::Newcomer newcomer{
      .pool = pool,
      .gpus = view.shape(job).gpus,
      .length = length_alone(view, job),
      .rank = rules_.rank,
      .wanted = static_cast<std::size_t>(choice_.missing())};  // each has a device to share
  const PartnerIndex& partners = running_.partners();
  const auto beside = [&](BucketId bucket) -> const Beside& {
    return newcomers_.beside(view, view.jobs.kind[job], partners, bucket);
  };
  const auto left = [&](JobId mate) { return running_.left(view, mate); };
  if (!only) return search_.begin(partners, newcomer, view.now, beside, left);
  residents_.clear();
  for (const std::int32_t device : DeviceMask{running_.occupancy().single_on(*only)}) {
    residents_.push_back(view.cluster.jobs_on(*only, device).front());
  }
  std::ranges::sort(residents_);
  residents_.erase(std::unique(residents_.begin(), residents_.end()), residents_.end());
  search_.begin_with(partners, newcomer, residents_, view.now, beside, left);
}

/// The best partners found, until nothing is missing or nobody is left.
void Starter::add_partners(std::optional<NodeId> only) {
  while (choice_.missing() > 0) {
    const auto partner = search_.next();
    if (!partner) return;
    auto slices = running_.devices(partner->job);
    if (only) {
      const auto here = std::ranges::find(slices, *only, &Slice::node);
      slices = {here, here + 1};
    }
    choice_.add_beside(slices, running_.occupancy());
    choice_.need_steps(partner->setting.sub_steps);
  }
}

bool Starter::commit(Pass& pass, JobId job, PoolId pool) {
  const bool started = pass.attempt([&] {
    set_sub_steps(pass, job, choice_.sub_steps());
    return pass.plan.try_share_on(job, pool, choice_.slices(), kJobsPerDevice);
  });
  if (started) running_.add(pass, job);
  return started;
}

}  // namespace berth::bsbf
