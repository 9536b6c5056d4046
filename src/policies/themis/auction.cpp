#include "policies/themis/auction.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "policies/themis/placed_auction.h"

namespace berth::themis {

namespace {

/// Up to this row of its bid.
void give_rows(Offer& offer, Stake& stake, std::uint32_t row) {
  offer.left -= stake.bid.curve[row].gpus - stake.bid.curve[stake.row].gpus;
  for (; stake.row < row; ++stake.row) stake.split.give(stake.bid.jobs[stake.row]);
}

/// One unit to one of its jobs, near to what it has. False: it wants none that is left.
bool give_unit(Offer& offer, Stake& stake) {
  const auto job = stake.split.next(offer.left);
  if (!job) return false;
  const std::int32_t unit = stake.split.jobs()[*job].unit;
  stake.split.give(*job);
  offer.take_near(stake, unit);
  offer.left -= unit;
  return true;
}

/// What pieces are worth to the apps of an auction, with the distances they mean for their jobs.
class AppValues final : public PlacedValues {
 public:
  AppValues(const Apps& apps, const Pass& pass, const Offer& offer, std::span<const Stake> stakes)
      : apps_(apps), view_(pass.view), plan_(pass.plan), offer_(offer), stakes_(stakes) {}

  [[nodiscard]] double value(std::size_t bidder, std::span<const Piece> pieces) const override {
    const Stake& stake = stakes_[bidder];
    const std::int32_t gpus = gpus_in(pieces);
    ViewedTimes times = *stake.times;
    AppSplit split{{stake.split.jobs().begin(), stake.split.jobs().end()}, times};
    for (std::size_t row = 0; stake.bid.curve[row].gpus < gpus; ++row)
      split.give(stake.bid.jobs[row]);
    const auto parts = deal(plan_, apps_, offer_, stake, split, pieces);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool has_some = split.jobs()[i].held > 0;
      if (gpus == 0 && !has_some) continue;
      // While some job has nothing, all take turns on everything the app has.
      times.set_level(i, level_of(stake.jobs[i], has_some ? parts[i] : pieces,
                                  has_some ? split.jobs()[i].held : gpus));
    }
    const double left = split.seconds_left();
    if (left == kInfinite) return 0;
    return apps_.ideal(view_, stake.app) / (apps_.elapsed(view_, stake.app) + left);
  }

 private:
  /// How far apart the job would be on what it keeps and these pieces.
  [[nodiscard]] Level level_of(JobId job, std::span<const Piece> pieces, std::int32_t gpus) const {
    const std::vector<Node>& nodes = view_.cluster.cluster().nodes;
    std::optional<NodeId> first;
    Level level = view_.believed().best_level(offer_.pool, gpus);
    const auto reach = [&](NodeId node) {
      if (!first) first = node;
      if (node == *first) return;
      const bool same_rack = nodes[node.value].rack == nodes[first->value].rack;
      level = std::max(level, same_rack ? Level::Rack : Level::CrossRack);
    };
    if (apps_.firm(job) > 0)
      for (const Slice& slice : plan_.slices(job)) reach(slice.node);
    for (const Piece& piece : pieces) reach(offer_.nodes[piece.machine]);
    return level;
  }

  const Apps& apps_;
  const View& view_;
  const Plan& plan_;
  const Offer& offer_;
  std::span<const Stake> stakes_;
};

}  // namespace

std::vector<Stake> Auction::hold(Pass& pass, Offer& offer) {
  std::vector<Stake> stakes;
  for (const AppId id : invite(pass.view, offer.pool, offer.left)) {
    Stake& stake = stakes.emplace_back(apps_.stake(pass.view, id, offer.pool));
    stake.bid =
        make_bid(stake.split, apps_.elapsed(pass.view, id), apps_.ideal(pass.view, id), offer.left);
    stake.homes = offer.machines_of(pass.plan, stake.jobs);
    apps_.withdraw(id);  // what stays in the market are the outsiders
  }
  const std::size_t bidders = stakes.size();
  sell(pass, offer, stakes);
  serve_outsiders(pass, offer, stakes);
  serve_bidders(offer, {stakes.data(), bidders});
  return stakes;
}

/// Apps without GPUs, longest first, then those with the largest rho. The market ranks the latter
/// by the rho last computed, so the candidates are refreshed before the choice.
std::vector<AppId> Auction::worst_off(const View& view, PoolId pool, std::size_t count) {
  const Market& market = apps_.market(pool);
  const auto append_first = [](const auto& ranked, std::size_t most, std::vector<AppId>& apps) {
    for (auto entry = ranked.begin(); entry != ranked.end() && apps.size() < most; ++entry)
      apps.push_back(entry->second);
  };
  std::vector<AppId> chosen;
  append_first(market.waiting(), count, chosen);
  std::vector<AppId> stale;
  append_first(market.hungry(), 2 * (count - chosen.size()), stale);
  for (const AppId id : stale) apps_.refresh(view, id);
  append_first(market.hungry(), count, chosen);
  return chosen;
}

std::vector<AppId> Auction::invite(const View& view, PoolId pool, std::int32_t gpus) {
  const Market& market = apps_.market(pool);
  const std::size_t count =
      std::min(options_.max_bidders, bidders_among(market.size(), options_.f));
  const std::vector<AppId> worst = worst_off(view, pool, count);
  std::vector<std::int32_t> least;
  for (const AppId id : worst) {
    const Demand demand = market.demand(id);
    least.push_back(demand.is_waiting() ? demand.unit : 0);
  }
  std::vector<AppId> bidders;
  std::size_t next = 0;
  for (const std::size_t member : who_can_take_part(least, gpus)) {
    for (; next < member; ++next) apps_.note_miss(view, pool, worst[next]);
    ++next;
    bidders.push_back(worst[member]);
  }
  if (bidders.empty() && !worst.empty()) apps_.note_miss(view, pool, worst.front());
  return bidders;
}

void Auction::sell(const Pass& pass, Offer& offer, std::span<Stake> bidders) const {
  if (offer.map) return sell_placed(pass, offer, bidders);
  std::vector<BidCurve> curves;
  for (const Stake& stake : bidders) curves.push_back(stake.bid.curve);
  const PartialAllocation auction = hold_auction(curves, offer.left);
  for (std::size_t i = 0; i < bidders.size(); ++i)
    give_rows(offer, bidders[i], row_kept(curves[i], auction.rows[i], auction.parts[i]));
}

void Auction::sell_placed(const Pass& pass, Offer& offer, std::span<Stake> bidders) const {
  std::vector<PlacedBidder> placed;
  for (const Stake& stake : bidders) {
    PlacedBidder& bidder = placed.emplace_back();
    for (const BidRow& row : stake.bid.curve)
      if (row.gpus > 0) bidder.sizes.push_back(row.gpus);
    bidder.homes = stake.homes;
  }
  const AppValues values{apps_, pass, offer, bidders};
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

/// One unit each in random order, those with GPUs on a machine of the offer first; again until
/// nobody wants more.
void Auction::serve_outsiders(Pass& pass, Offer& offer, std::vector<Stake>& stakes) {
  const Market& market = apps_.market(offer.pool);
  const std::size_t first = stakes.size();
  const auto serve = [&](AppId id) {
    Stake& stake = stakes.emplace_back(apps_.stake(pass.view, id, offer.pool));
    stake.homes = offer.machines_of(pass.plan, stake.jobs);
    apps_.withdraw(id);
    return give_unit(offer, stake);
  };
  std::vector<AppId> near;
  if (offer.map) {
    for (const auto& [rank, id] : market.hungry())
      if (!offer.machines_of(pass.plan, apps_.jobs_of(id)).empty()) near.push_back(id);
  }
  std::ranges::sort(near);
  for (std::size_t i = near.size(); i > 1; --i) std::swap(near[i - 1], near[pass.rng.below(i)]);
  bool again = false;
  for (std::size_t i = 0; i < near.size() && offer.left > 0; ++i) again = serve(near[i]) || again;
  while (offer.left > 0) {
    const auto id = market.draw(offer.left, pass.rng);
    if (!id) break;
    again = serve(*id) || again;
  }
  while (again && offer.left > 0) {
    again = false;
    for (std::size_t i = first; i < stakes.size(); ++i)
      again = give_unit(offer, stakes[i]) || again;
  }
}

/// What is left goes to the bidder with the largest rho, unit by unit.
void Auction::serve_bidders(Offer& offer, std::span<Stake> bidders) const {
  std::vector<BidCurve> curves;
  std::vector<std::uint32_t> ids;
  RowChoice rows;
  for (const Stake& stake : bidders) {
    curves.push_back(stake.bid.curve);
    ids.push_back(stake.app.value);
    rows.push_back(stake.row);
  }
  hand_out(curves, ids, rows, offer.left);
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    offer.take_near(bidders[i], curves[i][rows[i]].gpus - curves[i][bidders[i].row].gpus);
    give_rows(offer, bidders[i], rows[i]);
  }
}

}  // namespace berth::themis
