#include "policies/themis/themis.h"

#include "policies/themis/ftf_rounds.h"

namespace berth::themis {

void Themis::begin(const View& view) {
  apps_.begin(view);
  leases_.begin(view);
  pools_.resize(view.cluster.pools());
}

void Themis::on_arrival(const View& view, JobId job) {
  apps_.add(view, job);
  // Without any lease nothing else would ever open an auction.
  const bool opens = options_.on_arrival == ArrivalRule::OpensAuction || leases_.empty();
  if (!opens) return;
  for (const PoolId pool : view.shape(job).pools) pools_[pool].has_changed = true;
}

/// Its GPUs came back: an auction is due even if no other lease is left to end.
void Themis::note_freed(JobId job) {
  leases_.drop(job);
  if (apps_.held(job) > 0) pools_[apps_.pool_of(job)].has_changed = true;
}

void Themis::on_departure(const View& view, JobId job) {
  note_freed(job);
  apps_.remove(view, job);
}

void Themis::on_requeue(const View& view, JobId job) {
  note_freed(job);
  apps_.set_held(view, job, apps_.pool_of(job), 0);
  apps_.refresh(view, apps_.app_of(job));
}

void Themis::on_capacity_change(const View& view, NodeId node) {
  pools_[view.cluster.cluster().nodes[node.value].pool].has_changed = true;
}

void Themis::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  const auto was_wanted = [&](JobId job) { return pools_[apps_.pool_of(job)].was_wanted; };
  for (const JobId job : leases_.take_ended(view, was_wanted)) apps_.put_on_offer(job);
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    const PoolId pool{i};
    if (pools_[pool].has_changed || !apps_.ended(pool).empty()) hold_auction(pass, pool);
    for (const JobId job : apps_.ended(pool))  // jobs that keep their GPUs get another lease
      if (apps_.held(job) > 0 && !leases_.has(job)) leases_.grant(view, job);
    apps_.close_offer(pool);
    pools_[pool] = {.has_changed = false, .was_wanted = !apps_.market(pool).empty()};
  }
}

void Themis::hold_auction(Pass& pass, PoolId pool) {
  const View& view = pass.view;
  const Plan& plan = pass.plan;
  const Market& market = apps_.market(pool);
  const std::int64_t gpus = plan.cluster().free_gpus(pool) + apps_.gpus_of_ended(pool);
  // Nobody wants them, or there are none: all leases continue.
  if (market.empty() || gpus == 0) return;
  if (!market.first_starving() && market.smallest() > gpus) {
    // The offer helps nobody; invite() still notes which apps have missed it.
    auction_.invite(view, pool, static_cast<std::int32_t>(gpus));
    return;
  }
  for (const JobId job : apps_.ended(pool)) apps_.refresh(view, apps_.app_of(job));
  if (const auto starving = market.first_starving())
    if (!grants_.serve_starving(pass, pool, *starving)) return;

  Offer offer = make_offer(view, plan, apps_, pool, options_.slowdown);
  if (offer.left == 0 || market.empty()) return;
  grants_.carry_out(pass, offer, auction_.hold(pass, offer));
}

std::optional<Time> Themis::next_wakeup(const View&) {
  if (leases_.empty()) return std::nullopt;
  for (std::uint32_t pool = 0; pool < pools_.size(); ++pool)
    if (!apps_.market(PoolId{pool}).empty()) return leases_.first_end();
  return std::nullopt;  // an arrival calls decide(), which renews what has ended by then
}

}  // namespace berth::themis

namespace berth {

namespace {

using Made = Result<std::unique_ptr<Policy>>;

Made make_themis(const PolicyEntry&, const Params& params) {
  using namespace themis;
  Options options;
  BERTH_TRY(options.f, params.number("f", 0, 1));
  if (options.f >= 1) return params.wrong("f", "must be below 1: somebody has to see the offer");
  BERTH_TRY(options.lease, params.positive_duration("lease"));
  BERTH_TRY(options.align, params.positive_duration("align"));
  BERTH_TRY(options.max_bidders, params.whole<std::size_t>("max_bidders", 1, 1'000'000));
  BERTH_TRY(options.starve_leases, params.whole<std::int32_t>("starve_leases", 1, 1'000'000));
  BERTH_TRY(const bool opens, params.flag("auction_on_arrival"));
  options.on_arrival = opens ? ArrivalRule::OpensAuction : ArrivalRule::Waits;
  BERTH_TRY(options.app, params.choice<AppOf>("app", {{"group", AppOf::StudyOrGroup},
                                                      {"study", AppOf::Study},
                                                      {"job", AppOf::Job}}));
  BERTH_TRY(options.slowdown, params.choice<Slowdown>("slowdown", {{"believed", Slowdown::Believed},
                                                                   {"class", Slowdown::ByClass}}));
  BERTH_TRY(options.elastic, elastic_rule(params));
  return std::make_unique<Themis>(options);
}

Made make_rounds(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const Duration round, params.positive_duration("round"));
  return std::make_unique<themis::FtfRounds>(round);
}

}  // namespace

PolicyEntry themis_entry() {
  std::vector<ParamSpec> params{
      {"f", "0.8", "part of the apps, the best-off ones, that do not see an offer; below 1"},
      {"lease", "20m", "seconds for which GPUs are granted"},
      {"align", "60", "seconds; leases end at multiples of this"},
      {"max_bidders", "256", "apps that take part in one auction at most"},
      {"starve_leases", "3", "leases a gang may miss before GPUs are held back for it"},
      {"auction_on_arrival", "on", "hold an auction when an app arrives and GPUs are free"},
      {"app", "group", "what is fair to whom: group (study, else group), study, or job"},
      {"slowdown", "believed",
       "of spread gangs: believed (as the profiles say) or class (1/1.2/1.6/2.2, 1/1/1.1/1.2)"}};
  for (ParamSpec& param : elastic_params()) params.push_back(std::move(param));
  return {.name = "themis",
          .summary = "finish-time fairness of apps by auctions of leases",
          .params = std::move(params),
          .make = make_themis,
          .test_settings = {{"lease", "8"}, {"align", "1"}}};
}

PolicyEntry ftf_fractional_entry() {
  return {.name = "ftf-fractional",
          .summary = "finish-time fairness in rounds by fractions of time, rigid gangs",
          .params = {{"round", "360", "seconds of a round, aligned to time zero"}},
          .make = make_rounds,
          .test_settings = {{"round", "5"}}};
}

}  // namespace berth
