// Where a waiting job could go: on devices of its own, beside the best partners, or by first fit.
#include <algorithm>
#include <bit>
#include <cmath>

#include "policies/bsbf/sharing_sjf.h"

namespace berth {

namespace {
constexpr std::int32_t kJobsPerDevice = 2;
}

bool SharingSjf::try_alone(Plan& plan, const View& view, Kind& kind, JobId job) {
  for (const PoolId pool : view.shapes[kind.key.shape].pools) {
    if (!kind.alone_steps[pool.value] || view.cluster.free_gpus(pool) < kind.gpus) continue;
    Terms terms = plan.terms(job);
    terms.sub_steps = *kind.alone_steps[pool.value];
    static_cast<void>(plan.set_terms(job, terms));  // it holds nothing: always possible
    if (!plan.try_start_in(pool, job)) continue;
    started(view, plan, job);
    return true;
  }
  return false;
}

bool SharingSjf::try_share(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool,
                           std::int32_t& lacked) {
  auto missing = static_cast<std::int32_t>(kind.gpus - view.cluster.free_gpus(pool));
  const PartnerSearch::Newcomer newcomer{
      .pool = pool,
      .gpus = kind.gpus,
      .length = length(view, job),
      .rank = options_.rank,
      .wanted = static_cast<std::size_t>(missing)};  // each has a device to share
  search_.begin(
      *partners_, newcomer, view.now,
      [&](BucketId bucket) -> const BesideClass& { return beside(view, kind, bucket); },
      [&](JobId mate) { return solo_left_of_sharing(view, mate); });
  std::int32_t steps = kind.alone_steps[pool.value].value_or(1);
  add_free(view.cluster, pool);
  while (missing > 0) {
    const auto partner = search_.next();
    if (!partner) {
      lacked = std::min(lacked, missing);
      return false;
    }
    add_from(places_.slices(place_of_[partner->job]), missing);
    missing = kind.gpus - chosen_gpus();
    steps = std::max(steps, partner->setting.sub_steps);
  }
  lacked = 0;
  return commit(view, plan, job, pool, steps);
}

bool SharingSjf::try_first_fit(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool) {
  add_free(view.cluster, pool);
  std::int32_t steps = kind.alone_steps[pool.value].value_or(1);
  std::int32_t missing = kind.gpus - chosen_gpus();
  const NodeSet& nodes = occupancy_.nodes(pool);
  for (auto node = nodes.first(); node && missing > 0; node = nodes.next(NodeId{node->value + 1}))
    missing -= add_first_fit(view, kind, *node, missing, steps);
  return missing == 0 && commit(view, plan, job, pool, steps);
}

/// All devices of one server: its free ones first, then those of its best partners. Servers with
/// the least room that suffices come first.
bool SharingSjf::try_one_server(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool) {
  if (kind.gpus > view.cluster.largest_node(pool)) return false;
  for (std::int32_t free = kind.gpus; free <= view.cluster.largest_node(pool); ++free) {
    if (!view.cluster.nodes_with(pool, free).empty()) return try_alone(plan, view, kind, job);
  }
  std::vector<std::pair<std::int32_t, NodeId>> servers;
  const NodeSet& nodes = occupancy_.nodes(pool);
  for (const NodeId node : nodes) {
    const std::int32_t room =
        view.cluster.free_on(node) + std::popcount(occupancy_.single_on(node));
    if (room >= kind.gpus) servers.emplace_back(room, node);
  }
  std::ranges::sort(servers);
  return std::ranges::any_of(servers, [&](const auto& server) {
    return try_server(view, plan, kind, job, pool, server.second);
  });
}

bool SharingSjf::try_server(const View& view, Plan& plan, Kind& kind, JobId job, PoolId pool,
                            NodeId node) {
  chosen_.clear();
  if (const std::uint64_t free = view.cluster.free_mask(node); free != 0) add_devices(node, free);
  std::int32_t steps = kind.alone_steps[pool.value].value_or(1);
  std::int32_t missing = kind.gpus - chosen_gpus();
  if (!options_.best_benefit) {
    missing -= add_first_fit(view, kind, node, missing, steps);
    return missing == 0 && commit(view, plan, job, pool, steps);
  }
  const PartnerSearch::Newcomer newcomer{.pool = pool,
                                         .gpus = kind.gpus,
                                         .length = length(view, job),
                                         .rank = options_.rank,
                                         .wanted = static_cast<std::size_t>(missing)};
  for (const Partner& partner : partners_on(view, kind, newcomer, node)) {
    if (missing == 0) break;
    const auto slices = places_.slices(place_of_[partner.job]);
    const auto here = std::ranges::find(slices, node, &Slice::node);
    add_from({here, here + 1}, missing);
    missing = kind.gpus - chosen_gpus();
    steps = std::max(steps, partner.setting.sub_steps);
  }
  return missing == 0 && commit(view, plan, job, pool, steps);
}

/// The jobs of one server worth sharing with, best first.
std::vector<Partner> SharingSjf::partners_on(const View& view, Kind& kind,
                                             const PartnerSearch::Newcomer& newcomer, NodeId node) {
  std::vector<JobId> jobs;
  for_each_device(occupancy_.single_on(node), [&](std::int32_t device) {
    jobs.push_back(view.cluster.jobs_on(node, device).front());
  });
  std::ranges::sort(jobs);
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  search_.begin_with(
      *partners_, newcomer, jobs, view.now,
      [&](BucketId bucket) -> const BesideClass& { return beside(view, kind, bucket); },
      [&](JobId mate) { return solo_left_of_sharing(view, mate); });
  std::vector<Partner> best;
  while (const auto partner = search_.next()) best.push_back(*partner);
  return best;
}

bool SharingSjf::commit(const View& view, Plan& plan, JobId job, PoolId pool,
                        std::int32_t sub_steps) {
  const Plan::Mark before = plan.mark();
  Terms terms = plan.terms(job);
  terms.sub_steps = sub_steps;
  static_cast<void>(plan.set_terms(job, terms));  // it holds nothing: always possible
  if (!plan.try_share_on(job, pool, chosen_, kJobsPerDevice)) {
    plan.rollback(before);
    return false;
  }
  started(view, plan, job);
  return true;
}

const BesideClass& SharingSjf::beside(const View& view, Kind& kind, BucketId bucket) {
  if (kind.beside.size() <= bucket.value) kind.beside.resize(partners_->size());
  auto& known = kind.beside[bucket.value];
  if (!known) known = compute_beside(view, kind, (*partners_)[bucket].klass);
  return *known;
}

BesideClass SharingSjf::compute_beside(const View& view, const Kind& kind,
                                       const PartnerClass& klass) const {
  const RateModel& model = view.believed();
  const std::int64_t memory = model.device_memory_mib(klass.pool);
  BesideClass beside;
  if (memory > 0) {
    const auto steps = steps_within(view, kind, memory - klass.memory_mib - options_.reserve_mib);
    if (!steps) return beside;
    beside.sub_steps = *steps;
  }
  beside.fits = true;
  beside.slowdown = {.running = model.profiles().slowdown(klass.profile, kind.key.profile),
                     .newcomer = model.profiles().slowdown(kind.key.profile, klass.profile)};
  Standing standing{.profile = kind.key.profile,
                    .pool = klass.pool,
                    .gpus = kind.gpus,
                    .wanted = kind.gpus,
                    .batch = kind.key.batch,
                    .level = model.best_level(klass.pool, kind.gpus)};
  const double whole = model.iteration(standing).total;
  standing.terms.sub_steps = beside.sub_steps;
  beside.stretch = model.iteration(standing).total / whole;
  return beside;
}

std::optional<std::int32_t> SharingSjf::steps_within(const View& view, const Kind& kind,
                                                     std::int64_t memory_mib) const {
  const Profile& profile = view.believed().profile(kind.key.profile);
  const std::int32_t batch = kind.key.batch > 0 ? kind.key.batch : profile.batch;
  return fewest_sub_steps(batch, [&](std::int32_t sub_batch) {
    return std::ceil(profile.memory_mib(sub_batch)) <= static_cast<double>(memory_mib);
  });
}

std::int32_t SharingSjf::chosen_gpus() const noexcept {
  std::int32_t gpus = 0;
  for (const Slice& slice : chosen_) gpus += slice.gpus;
  return gpus;
}

void SharingSjf::add_devices(NodeId node, std::uint64_t devices) {
  const auto at = std::ranges::lower_bound(chosen_, node, {}, &Slice::node);
  if (at != chosen_.end() && at->node == node) {
    at->devices |= devices;
    at->gpus = std::popcount(at->devices);
  } else {
    chosen_.insert(at, {.node = node, .gpus = std::popcount(devices), .devices = devices});
  }
}

void SharingSjf::add_free(const ClusterState& state, PoolId pool) {
  std::int64_t rest = state.free_gpus(pool);
  for (std::int32_t free = 1; rest > 0; ++free) {
    const NodeSet& nodes = state.nodes_with(pool, free);
    rest -= free * static_cast<std::int64_t>(nodes.size());
    if (nodes.empty()) continue;
    for (const NodeId node : nodes) add_devices(node, state.free_mask(node));
  }
}

/// At most `wanted` of the devices a job has for itself: on servers chosen already first, then by
/// id.
void SharingSjf::add_from(std::span<const Slice> slices, std::int32_t wanted) {
  const auto take = [&](const Slice& slice) {
    std::uint64_t devices = 0;
    std::uint64_t rest = slice.devices & occupancy_.single_on(slice.node);
    for (; rest != 0 && wanted > 0; rest &= rest - 1, --wanted) devices |= rest & (~rest + 1);
    if (devices != 0) add_devices(slice.node, devices);
  };
  elsewhere_.clear();
  for (const Slice& slice : slices) {
    const auto at = std::ranges::lower_bound(chosen_, slice.node, {}, &Slice::node);
    if (at != chosen_.end() && at->node == slice.node) {
      take(slice);
    } else {
      elsewhere_.push_back(slice);
    }
  }
  for (const Slice& slice : elsewhere_) take(slice);
}

/// The first devices of a node with memory enough; how many were found.
std::int32_t SharingSjf::add_first_fit(const View& view, const Kind& kind, NodeId node,
                                       std::int32_t wanted, std::int32_t& steps) {
  std::uint64_t devices = 0;
  for (std::uint64_t rest = occupancy_.single_on(node);
       rest != 0 && std::popcount(devices) < wanted; rest &= rest - 1) {
    const std::int64_t room =
        view.cluster.free_memory_mib(node, std::countr_zero(rest)) - options_.reserve_mib;
    const auto fitting = steps_within(view, kind, room);
    if (!fitting) continue;
    steps = std::max(steps, *fitting);
    devices |= rest & (~rest + 1);
  }
  if (devices != 0) add_devices(node, devices);
  return std::popcount(devices);
}

}  // namespace berth
