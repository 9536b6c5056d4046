#include "policies/themis/offer.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace berth::themis {

namespace {

void sort_unique(std::vector<std::uint32_t>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// Those of the nodes, by position, on which one of the jobs has devices; ascending.
std::vector<std::uint32_t> positions(const Plan& plan, std::span<const JobId> jobs,
                                     std::span<const NodeId> nodes) {
  std::vector<std::uint32_t> found;
  for (const JobId job : jobs) {
    if (!plan.holds(job)) continue;
    for (const Slice& slice : plan.slices(job)) {
      const auto at = std::ranges::lower_bound(nodes, slice.node);
      if (at != nodes.end() && *at == slice.node)
        found.push_back(static_cast<std::uint32_t>(at - nodes.begin()));
    }
  }
  sort_unique(found);
  return found;
}

void draw_map(const View& view, const Plan& plan, const Apps& apps, Offer& offer) {
  std::map<NodeId, std::int32_t> free;
  const ClusterState& state = plan.cluster();
  for (std::int32_t count = 1; count <= state.largest_node(offer.pool); ++count)
    for (const NodeId node : state.nodes_with(offer.pool, count)) free[node] = count;
  for (const JobId job : apps.ended(offer.pool))
    for (const Slice& slice : plan.slices(job)) free[slice.node] += slice.gpus;
  std::vector<std::int32_t> counts;
  std::vector<std::uint32_t> racks;
  for (const auto& [node, count] : free) {
    offer.nodes.push_back(node);
    counts.push_back(count);
    racks.push_back(view.cluster.cluster().nodes[node.value].rack.value);
  }
  offer.map.emplace(counts, racks);
}

}  // namespace

Offer make_offer(const View& view, const Plan& plan, const Apps& apps, PoolId pool,
                 Slowdown slowdown) {
  const std::int64_t gpus = plan.cluster().free_gpus(pool) + apps.gpus_of_ended(pool);
  Offer offer{.pool = pool, .left = static_cast<std::int32_t>(gpus)};
  if (gpus > 0 && distance_counts(view, slowdown)) draw_map(view, plan, apps, offer);
  return offer;
}

std::vector<std::uint32_t> Offer::machines_of(const Plan& plan, std::span<const JobId> jobs) const {
  if (!map) return {};
  return positions(plan, jobs, nodes);
}

void Offer::take_near(Stake& stake, std::int32_t gpus) {
  if (!map || gpus == 0) return;
  std::vector<std::uint32_t> homes = stake.homes;
  for (const Piece& piece : stake.pieces) homes.push_back(piece.machine);
  sort_unique(homes);
  const Pieces more = map->near(homes, gpus);
  map->take(more);
  stake.pieces = sum_of(stake.pieces, more);
}

std::vector<Pieces> deal(const Plan& plan, const Apps& apps, const Offer& offer, const Stake& stake,
                         const AppSplit& split, std::span<const Piece> pieces) {
  std::vector<Pieces> parts(stake.jobs.size());
  if (parts.size() == 1) {
    parts[0].assign(pieces.begin(), pieces.end());
    return parts;
  }
  const auto added = [&](std::size_t i) { return split.jobs()[i].held - apps.firm(stake.jobs[i]); };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < stake.jobs.size(); ++i)
    if (added(i) > 0) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(-added(i), i); });

  std::vector<std::int32_t> counts;  // a map of these pieces alone
  std::vector<std::uint32_t> racks;
  std::vector<NodeId> nodes;
  for (const Piece& piece : pieces) {
    counts.push_back(piece.gpus);
    racks.push_back(offer.map->rack_of(piece.machine));
    nodes.push_back(offer.nodes[piece.machine]);
  }
  OfferMap own{counts, racks};
  for (const std::size_t i : order) {
    parts[i] = own.near(positions(plan, {&stake.jobs[i], 1}, nodes), added(i));
    own.take(parts[i]);
    for (Piece& piece : parts[i]) piece.machine = pieces[piece.machine].machine;
  }
  return parts;
}

}  // namespace berth::themis
