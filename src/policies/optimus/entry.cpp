#include "policies/optimus/entry.h"

#include "policies/optimus/optimus.h"

namespace berth {

namespace {

Result<optimus::BeliefOptions> read_beliefs(const Params& params) {
  optimus::BeliefOptions options;
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(const std::size_t work, params.choice("work", {"losses", "estimate"}));
  options.work = static_cast<optimus::WorkSource>(work);
  BERTH_TRY(const std::size_t speed, params.choice("speed", {"profile", "fit"}));
  options.speed = static_cast<optimus::SpeedSource>(speed);
  BERTH_TRY(options.convergence.delta, params.number("delta", 1e-6, 1));
  BERTH_TRY(options.convergence.patience, params.integer("patience", 1, 1000));
  BERTH_TRY(options.fit.favour_late, params.flag("favour_late"));
  BERTH_TRY(const std::int64_t points, params.integer("max_points", 3, 1'000'000));
  options.fit.max_points = static_cast<std::size_t>(points);
  BERTH_TRY(options.young_share, params.number("young_epochs", 0, 1));
  return options;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  optimus::Options options;
  BERTH_TRY(options.beliefs, read_beliefs(params));
  BERTH_TRY(options.interval, params.duration("interval"));
  if (options.interval <= Duration::zero())
    return params.wrong("interval", "must be more than zero");
  BERTH_TRY(options.overhead, params.duration("overhead"));
  BERTH_TRY(options.young_factor, params.number("young_factor", 0, 1));
  BERTH_TRY(const std::size_t start, params.choice("start", {"now", "interval"}));
  options.start = static_cast<optimus::StartRule>(start);
  BERTH_TRY(const std::size_t place, params.choice("place", {"run", "even"}));
  options.place = static_cast<optimus::PlaceRule>(place);
  BERTH_TRY(const std::int64_t ahead, params.integer("look_ahead", 1, 1000));
  options.look_ahead = static_cast<std::int32_t>(ahead);
  return std::make_unique<optimus::Optimus>(entry.name, options);
}

std::vector<ParamSpec> optimus_params() {
  std::vector<ParamSpec> params = elastic_params();
  const std::vector<ParamSpec> own = {
      {"interval", "10m", "seconds between two allocations, aligned to time zero"},
      {"overhead", "30",
       "seconds of a resize or restart, beside what the run charges; smaller savings do not "
       "resize"},
      {"young_factor", "0.95", "gains of young jobs count so much"},
      {"young_epochs", "0.1", "a job is young during this share of its predicted epochs"},
      {"delta", "0.01",
       "trained when an epoch lowers the loss by less than this of the first loss"},
      {"patience", "1", "epochs in a row for that"},
      {"favour_late", "on", "thirds of the loss history weigh 1, 4, 16"},
      {"max_points", "500", "losses in a fit; more are averaged"},
      {"look_ahead", "1", "GPUs more that a job is asked about when one gains nothing"},
      {"work", "losses", "work left: losses (estimate until they suffice) or estimate"},
      {"speed", "profile", "sizes a job has not run with: profile, or fit (curve through samples)"},
      {"start", "now", "new jobs: now with their fewest GPUs if free, or at the next interval"},
      {"place", "run", "run: the run's --placement; even: fewest servers, as many GPUs on each"}};
  params.insert(params.end(), own.begin(), own.end());
  return params;
}

}  // namespace

PolicyEntry optimus_entry() {
  return {.name = "optimus",
          .summary =
              "elastic; GPUs go where they shorten the remaining time most, predicted from losses",
          .params = optimus_params(),
          .make = make};
}

}  // namespace berth
