// One pool's auction: who is invited, what they get, what becomes of the rest.
#include <algorithm>
#include <tuple>

#include "policies/themis/themis.h"

namespace berth::themis {

Themis::Stake Themis::make_stake(const View& view, AppId id, PoolId pool) {
  std::vector<JobId> jobs = app(id).jobs;
  std::ranges::sort(jobs, {}, [&](JobId job) { return std::tuple(jobs_[job.value].since, job); });
  std::vector<SplitJob> split;
  std::vector<ViewedTimes::Row> rows;
  for (const JobId job : jobs) {
    const JobRow& row = jobs_[job.value];
    const std::int32_t has = firm(job);
    const auto& pools = view.shape(job).pools;
    const bool accepts = std::ranges::find(pools, pool) != pools.end();
    split.push_back(
        {.unit = row.unit,
         .most = row.most,
         .held = has,
         .can_grow = accepts && (has == 0 || (row.pool == pool && may_grow(view, job)))});
    const double left = to_seconds(view.estimated_left(job));
    rows.push_back({.job = job,
                    .pool = has > 0 ? row.pool : (accepts ? pool : pools.front()),
                    .left = left,
                    .overrun = left > 0 ? 0 : to_seconds(options_.lease)});
  }
  auto times = std::make_unique<ViewedTimes>(view, options_.slowdown, std::move(rows));
  AppSplit as_split{std::move(split), *times};
  return {id, std::move(jobs), std::move(times), std::move(as_split), {}};
}

void Themis::hold(const View& view, Plan& plan, PoolId pool, Rng& rng) {
  PoolRow& row = pools_[pool.value];
  std::int64_t gpus = plan.cluster().free_gpus(pool);
  for (const JobId job : row.ended) gpus += jobs_[job.value].held;
  // Nobody else wants them, or nobody could use them: all leases go on.
  if (row.market.empty() || gpus == 0) return;
  const auto most = static_cast<std::int32_t>(std::min<std::int64_t>(gpus, 1'000'000'000));
  if (!row.market.first_starving() && row.market.smallest() > most) {
    static_cast<void>(invite(view, pool, most));  // who misses it this time
    return;
  }
  for (const JobId job : row.ended) refresh(view, jobs_[job.value].app);
  if (row.market.first_starving() && !serve_starving(view, plan, pool)) return;

  Offer offer{.pool = pool, .left = static_cast<std::int32_t>(plan.cluster().free_gpus(pool))};
  for (const JobId job : row.ended) offer.left += plan.holds(job) ? jobs_[job.value].held : 0;
  if (offer.left <= 0 || row.market.empty()) return;
  if (distance_counts(view, options_.slowdown)) draw_map(view, plan, offer);

  std::vector<Stake> stakes;
  for (const AppId id : invite(view, pool, offer.left)) {
    stakes.push_back(make_stake(view, id, pool));
    Stake& stake = stakes.back();
    stake.bid = make_bid(stake.split, elapsed(view, id), ideal(view, id), offer.left);
    find_homes(plan, offer, stake);
    withdraw(id);  // the others are outsiders
  }
  const std::size_t bidders = stakes.size();
  sell(view, plan, offer, {stakes.data(), bidders});
  serve_outsiders(view, plan, offer, stakes, rng);
  serve_bidders(offer, {stakes.data(), bidders});
  grant(view, plan, offer, stakes);
}

/// A gang that missed too many auctions comes before all others. False: it does not fit yet, and
/// what is free is held back, unless no more can come.
bool Themis::serve_starving(const View& view, Plan& plan, PoolId pool) {
  const AppId id = *pools_[pool.value].market.first_starving();
  stop_ended(view, plan, pool);
  const std::int64_t free = plan.cluster().free_gpus(pool);
  const bool is_all = free == plan.cluster().usable_gpus(pool);
  const Stake stake = make_stake(view, id, pool);
  const auto job = stake.split.next(static_cast<std::int32_t>(free));
  if (!job) return is_all;
  const JobId first = stake.jobs[*job];
  const std::int32_t unit = jobs_[first.value].unit;
  if (!plan.try_start_sized(pool, first, unit, Reason::Reservation)) return is_all;
  note_held(view, first, pool, unit);
  set_lease(view, first);
  refresh(view, id);
  return true;
}

/// Those without GPUs by how long they have had none, then those with the largest rho. The order of
/// the latter is as it was last known; whoever comes up is looked at anew.
std::vector<AppId> Themis::worst_off(const View& view, PoolId pool, std::size_t count) {
  const Market& market = pools_[pool.value].market;
  std::vector<AppId> chosen;
  for (auto entry = market.waiting().begin();
       entry != market.waiting().end() && chosen.size() < count; ++entry)
    chosen.push_back(entry->second);
  const std::size_t hungry = count - chosen.size();
  if (hungry == 0 || market.hungry().empty()) return chosen;
  std::vector<AppId> stale;
  for (auto entry = market.hungry().begin();
       entry != market.hungry().end() && stale.size() < 2 * hungry; ++entry)
    stale.push_back(entry->second);
  for (const AppId id : stale) refresh(view, id);
  for (auto entry = market.hungry().begin();
       entry != market.hungry().end() && chosen.size() < count; ++entry)
    chosen.push_back(entry->second);
  return chosen;
}

/// The worst-off part of the apps, as far as all of them can have something.
std::vector<AppId> Themis::invite(const View& view, PoolId pool, std::int32_t gpus) {
  const std::size_t count =
      std::min(options_.max_bidders, bidders_among(pools_[pool.value].market.size(), options_.f));
  const std::vector<AppId> worst = worst_off(view, pool, count);
  std::vector<std::int32_t> least;
  for (const AppId id : worst) {
    const Seat& seat = app(id).seats[pool.value];
    least.push_back(seat.is_waiting() ? seat.unit : 0);
  }
  std::vector<AppId> bidders;
  std::size_t next = 0;
  for (const std::size_t member : who_can_take_part(least, gpus)) {
    for (; next < member; ++next) note_miss(view, pool, worst[next]);
    ++next;
    bidders.push_back(worst[member]);
  }
  if (bidders.empty() && !worst.empty()) note_miss(view, pool, worst.front());
  return bidders;
}

/// At most one per lease counts: a crowd of short jobs ending is no bad luck.
void Themis::note_miss(const View& view, PoolId pool, AppId id) {
  App& owner = app(id);
  if (owner.missed > 0 && view.now - owner.last_miss < options_.lease) return;
  ++owner.missed;
  owner.last_miss = view.now;
  Seat& seat = owner.seats[pool.value];
  if (owner.missed >= options_.starve_leases && !seat.is_starving)
    pools_[pool.value].market.set_starving(id, seat);
}

/// Up to this row of its bid.
void Themis::give_rows(Offer& offer, Stake& stake, std::uint32_t row) {
  const std::int32_t more = stake.bid.curve[row].gpus - stake.bid.curve[stake.row].gpus;
  for (; stake.row < row; ++stake.row) stake.split.give(stake.bid.jobs[stake.row]);
  offer.left -= more;
}

void Themis::sell(const View& view, const Plan& plan, Offer& offer, std::span<Stake> bidders) {
  if (offer.map) return sell_placed(view, plan, offer, bidders);
  std::vector<BidCurve> curves;
  for (const Stake& stake : bidders) curves.push_back(stake.bid.curve);
  const PartialAllocation auction = hold_auction(curves, offer.left);
  for (std::size_t i = 0; i < bidders.size(); ++i)
    give_rows(offer, bidders[i], row_kept(curves[i], auction.rows[i], auction.parts[i]));
}

/// One unit to one of its jobs, near to what it has.
bool Themis::give_unit(Offer& offer, Stake& stake) {
  const auto job = stake.split.next(offer.left);
  if (!job) return false;
  const std::int32_t unit = stake.split.jobs()[*job].unit;
  stake.split.give(*job);
  take_near(offer, stake, unit);
  offer.left -= unit;
  return true;
}

/// One unit each in random order, those with GPUs on a machine of the offer first; again until
/// nobody wants more.
void Themis::serve_outsiders(const View& view, const Plan& plan, Offer& offer,
                             std::vector<Stake>& stakes, Rng& rng) {
  const Market& market = pools_[offer.pool.value].market;
  const auto serve = [&](AppId id) {
    Stake stake = make_stake(view, id, offer.pool);
    find_homes(plan, offer, stake);
    withdraw(id);
    static_cast<void>(give_unit(offer, stake));
    stakes.push_back(std::move(stake));
  };
  const std::size_t first = stakes.size();
  std::vector<AppId> near = neighbours_of(plan, offer);
  for (std::size_t i = near.size(); i > 1; --i) std::swap(near[i - 1], near[rng.below(i)]);
  for (std::size_t i = 0; i < near.size() && offer.left > 0; ++i) serve(near[i]);
  while (offer.left > 0) {
    const auto id = market.draw(offer.left, rng);
    if (!id) break;
    serve(*id);
  }
  for (bool again = true; again && offer.left > 0;) {
    again = false;
    for (std::size_t i = first; i < stakes.size(); ++i)
      again = give_unit(offer, stakes[i]) || again;
  }
}

/// What is left goes to the bidder with the largest rho, unit by unit.
void Themis::serve_bidders(Offer& offer, std::span<Stake> bidders) {
  std::vector<BidCurve> curves;
  std::vector<std::uint32_t> ids;
  RowChoice rows;
  for (const Stake& stake : bidders) {
    curves.push_back(stake.bid.curve);
    ids.push_back(stake.app.value);
    rows.push_back(stake.row);
  }
  static_cast<void>(hand_out(curves, ids, rows, offer.left));
  for (std::size_t i = 0; i < bidders.size(); ++i) {
    take_near(offer, bidders[i], curves[i][rows[i]].gpus - curves[i][bidders[i].row].gpus);
    give_rows(offer, bidders[i], rows[i]);
  }
}

}  // namespace berth::themis
