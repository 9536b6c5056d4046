// Auctions where it matters on which machines GPUs are: the offer as a map, what pieces of it are
// worth to an app, and which of its jobs gets which.
#include <algorithm>
#include <tuple>

#include "policies/themis/placed_auction.h"
#include "policies/themis/themis.h"

namespace berth::themis {

namespace {

/// Machines of the offer that hold the slices, ascending.
void append_machines(std::span<const Slice> slices, std::span<const NodeId> nodes,
                     std::vector<std::uint32_t>& machines) {
  for (const Slice& slice : slices) {
    const auto found = std::ranges::lower_bound(nodes, slice.node);
    if (found != nodes.end() && *found == slice.node)
      machines.push_back(static_cast<std::uint32_t>(found - nodes.begin()));
  }
}

void sort_unique(std::vector<std::uint32_t>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

/// Free devices and those of ended leases, by node.
void Themis::draw_map(const View& view, const Plan& plan, Offer& offer) {
  std::map<NodeId, std::int32_t> free;
  const ClusterState& state = plan.cluster();
  for (std::int32_t count = 1; count <= state.largest_node(offer.pool); ++count) {
    const NodeSet& nodes = state.nodes_with(offer.pool, count);
    for (const NodeId node : nodes) free[node] = count;
  }
  for (const JobId job : pools_[offer.pool.value].ended)
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

void Themis::find_homes(const Plan& plan, const Offer& offer, Stake& stake) const {
  if (!offer.map) return;
  for (const JobId job : stake.jobs)
    if (plan.holds(job)) append_machines(plan.slices(job), offer.nodes, stake.homes);
  sort_unique(stake.homes);
}

/// Apps outside the auction that have GPUs on a machine of the offer.
std::vector<AppId> Themis::neighbours_of(const Plan& plan, const Offer& offer) const {
  std::vector<AppId> apps;
  if (!offer.map) return apps;
  std::vector<std::uint32_t> machines;
  for (const auto& [key, id] : pools_[offer.pool.value].market.hungry()) {
    machines.clear();
    for (const JobId job : apps_[id.value].jobs)
      if (plan.holds(job)) append_machines(plan.slices(job), offer.nodes, machines);
    if (!machines.empty()) apps.push_back(id);
  }
  std::ranges::sort(apps);
  return apps;
}

void Themis::take_near(Offer& offer, Stake& stake, std::int32_t gpus) const {
  if (!offer.map || gpus == 0) return;
  std::vector<std::uint32_t> homes = stake.homes;
  for (const Piece& piece : stake.pieces) homes.push_back(piece.machine);
  sort_unique(homes);
  const Pieces more = offer.map->near(homes, gpus);
  offer.map->take(more);
  stake.pieces = sum_of(stake.pieces, more);
}

/// Which job gets which pieces: the largest gangs choose first, each where it is already, then the
/// tightest fit.
std::vector<Pieces> Themis::deal(const Plan& plan, const Offer& offer, const Stake& stake,
                                 const AppSplit& split, std::span<const Piece> pieces) const {
  std::vector<Pieces> parts(stake.jobs.size());
  if (parts.size() == 1) {
    parts[0].assign(pieces.begin(), pieces.end());
    return parts;
  }
  const auto added = [&](std::size_t i) { return split.jobs()[i].held - firm(stake.jobs[i]); };
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
  std::vector<std::uint32_t> homes;
  for (const std::size_t i : order) {
    homes.clear();
    if (plan.holds(stake.jobs[i])) append_machines(plan.slices(stake.jobs[i]), nodes, homes);
    sort_unique(homes);
    parts[i] = own.near(homes, added(i));
    own.take(parts[i]);
    for (Piece& piece : parts[i]) piece.machine = pieces[piece.machine].machine;
  }
  return parts;
}

/// What pieces are worth to the apps of an auction, with the distances they mean for their jobs.
class Themis::AppValues final : public PlacedValues {
 public:
  AppValues(const Themis& policy, const View& view, const Plan& plan, const Offer& offer,
            std::span<const Stake> stakes)
      : policy_(policy), view_(view), plan_(plan), offer_(offer), stakes_(stakes) {}

  [[nodiscard]] double value(std::size_t bidder, std::span<const Piece> pieces) const override {
    const Stake& stake = stakes_[bidder];
    const std::int32_t gpus = gpus_in(pieces);
    std::vector<SplitJob> jobs(stake.split.jobs().begin(), stake.split.jobs().end());
    ViewedTimes times = *stake.times;
    AppSplit split{std::move(jobs), times};
    for (std::size_t row = 0; stake.bid.curve[row].gpus < gpus; ++row)
      split.give(stake.bid.jobs[row]);
    const auto parts = policy_.deal(plan_, offer_, stake, split, pieces);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool has_some = split.jobs()[i].held > 0;
      if (gpus == 0 && !has_some) continue;
      // while some job has nothing all run in turn on everything there is
      times.set_level(i, level_of_job(stake.jobs[i], has_some ? parts[i] : pieces,
                                      has_some ? split.jobs()[i].held : gpus));
    }
    const double left = split.seconds_left();
    if (left == kInfinite) return 0;
    return policy_.ideal(view_, stake.app) / (policy_.elapsed(view_, stake.app) + left);
  }

 private:
  [[nodiscard]] Level level_of_job(JobId job, std::span<const Piece> pieces,
                                   std::int32_t gpus) const {
    const std::vector<Node>& nodes = view_.cluster.cluster().nodes;
    std::optional<NodeId> first;
    Level level = view_.believed().best_level(offer_.pool, gpus);
    const auto reach = [&](NodeId node) {
      if (!first) first = node;
      if (node == *first) return;
      const bool same_rack = nodes[node.value].rack == nodes[first->value].rack;
      level = std::max(level, same_rack ? Level::Rack : Level::CrossRack);
    };
    if (policy_.firm(job) > 0)
      for (const Slice& slice : plan_.slices(job)) reach(slice.node);
    for (const Piece& piece : pieces) reach(offer_.nodes[piece.machine]);
    return level;
  }

  const Themis& policy_;
  const View& view_;
  const Plan& plan_;
  const Offer& offer_;
  std::span<const Stake> stakes_;
};

void Themis::sell_placed(const View& view, const Plan& plan, Offer& offer,
                         std::span<Stake> bidders) {
  std::vector<PlacedBidder> placed;
  for (const Stake& stake : bidders) {
    PlacedBidder& bidder = placed.emplace_back();
    for (const BidRow& row : stake.bid.curve)
      if (row.gpus > 0) bidder.sizes.push_back(row.gpus);
    bidder.homes = stake.homes;
  }
  const AppValues values{*this, view, plan, offer, bidders};
  const PlacedAllocation auction = hold_placed_auction(placed, values, *offer.map);
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    const BidCurve& curve = bidders[i].bid.curve;
    const std::int32_t won = gpus_in(auction.pieces[i]);
    const auto row = static_cast<std::uint32_t>(
        std::ranges::lower_bound(curve, won, {}, &BidRow::gpus) - curve.begin());
    const std::uint32_t kept = row_kept(curve, row, auction.parts[i]);
    bidders[i].pieces = most_local(auction.pieces[i], curve[kept].gpus);
    offer.map->take(bidders[i].pieces);
    give_rows(offer, bidders[i], kept);
  }
}

}  // namespace berth::themis
