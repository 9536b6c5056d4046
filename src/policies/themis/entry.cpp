#include "policies/themis/entry.h"

#include "policies/themis/ftf_rounds.h"
#include "policies/themis/themis.h"

namespace berth {

namespace {

using Made = Result<std::unique_ptr<Policy>>;

Result<Duration> above_zero(const Params& params, std::string_view key) {
  BERTH_TRY(const Duration duration, params.duration(key));
  if (duration <= Duration::zero()) return params.wrong(key, "must be more than zero");
  return duration;
}

Made make_themis(const PolicyEntry&, const Params& params) {
  themis::Options options;
  BERTH_TRY(options.f, params.number("f", 0, 1));
  if (options.f >= 1) return params.wrong("f", "must be below 1: somebody has to see the offer");
  BERTH_TRY(options.lease, above_zero(params, "lease"));
  BERTH_TRY(options.align, above_zero(params, "align"));
  BERTH_TRY(const std::int64_t bidders, params.integer("max_bidders", 1, 1'000'000));
  options.max_bidders = static_cast<std::size_t>(bidders);
  BERTH_TRY(const std::int64_t starve, params.integer("starve_leases", 1, 1'000'000));
  options.starve_leases = static_cast<std::int32_t>(starve);
  BERTH_TRY(options.auction_on_arrival, params.flag("auction_on_arrival"));
  BERTH_TRY(const std::size_t app, params.choice("app", {"group", "study", "job"}));
  options.app = static_cast<themis::AppOf>(app);
  BERTH_TRY(const std::size_t slowdown, params.choice("slowdown", {"believed", "class"}));
  options.slowdown = slowdown == 0 ? themis::Slowdown::Believed : themis::Slowdown::ByClass;
  BERTH_TRY(options.elastic, elastic_rule(params));
  return std::make_unique<themis::Themis>(options);
}

Made make_rounds(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const Duration round, above_zero(params, "round"));
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
          .make = make_themis};
}

PolicyEntry ftf_fractional_entry() {
  return {.name = "ftf-fractional",
          .summary = "finish-time fairness in rounds by fractions of time, rigid gangs",
          .params = {{"round", "360", "seconds of a round, aligned to time zero"}},
          .make = make_rounds};
}

}  // namespace berth
