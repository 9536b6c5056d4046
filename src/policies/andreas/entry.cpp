#include "policies/andreas/entry.h"

#include "policies/andreas/andreas.h"

namespace berth {

namespace {

Result<void> read_prices(const Params& params, AndreasOptions& options) {
  BERTH_TRY(options.tariff.price, params.number("price", 0, 1e6));
  BERTH_TRY(options.tariff.pue, params.number("pue", 1, 100));
  BERTH_TRY(options.omega, params.number("omega", 0, 1e9));
  BERTH_TRY(options.rho, params.number("rho", 0, 1e9));
  BERTH_TRY(options.aging, params.number("aging", 0, 1e9));
  return {};
}

Result<void> read_times(const Params& params, AndreasOptions& options) {
  BERTH_TRY(options.period, params.duration("period"));
  if (options.period <= Duration::zero()) return params.wrong("period", "must be more than zero");
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(options.boot, params.duration("boot"));
  BERTH_TRY(options.idle_off, params.duration("idle_off"));
  BERTH_TRY(options.min_interval, params.duration("min_interval"));
  return {};
}

Result<std::unique_ptr<Policy>> make_andreas(const PolicyEntry&, const Params& params) {
  AndreasOptions options;
  BERTH_TRY_VOID(read_prices(params, options));
  BERTH_TRY_VOID(read_times(params, options));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.iterations, params.integer("max_it", 1, 1'000'000));
  BERTH_TRY(options.sweeps, params.integer("sweeps", 0, 1'000'000));
  BERTH_TRY(options.effort, params.integer("effort", 1, 1'000'000'000));
  BERTH_TRY(const std::int64_t window, params.integer("window", 1, 10'000'000));
  options.window = static_cast<std::size_t>(window);
  BERTH_TRY(options.best_share, params.number("p_best", 0, 1));
  BERTH_TRY(options.wait_cheaper, params.flag("wait_cheaper"));
  return std::make_unique<Andreas>(options);
}

std::vector<ParamSpec> andreas_params() {
  std::vector<ParamSpec> params{
      {"price", "0.172", "EUR per kWh"},
      {"pue", "1.2", "power drawn by the building for every watt of a node"},
      {"omega", "1", "EUR per hour late of a job of weight 1"},
      {"rho", "100", "how many times the worst lateness of a postponed job counts"},
      {"aging", "0.01", "EUR per hour late and hour since submission, for jobs without deadline"},
      {"period", "1h", "time between two passes at most"},
      {"min_interval", "0", "seconds between two passes at least"},
      {"restart", "30", "seconds of its new node's cost that moving a running job counts"},
      {"boot", "120", "seconds a node is believed to boot"},
      {"idle_off", "0", "seconds without a job after which a node is switched off"},
      {"max_it", "1000", "constructions per pass at most"},
      {"sweeps", "100", "rounds of local search at most"},
      {"effort", "5000", "placements tried per pass: fewer constructions when there are many jobs"},
      {"window", "5000", "waiting jobs considered, the most pressing first"},
      {"p_best", "0.5",
       "how often a construction takes a job's best choice instead of drawing one"},
      {"wait_cheaper", "off", "jobs may wait because they run cheaper later"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  return params;
}

}  // namespace

PolicyEntry andreas_entry() {
  return {
      .name = "andreas",
      .summary =
          "preemptive, least energy and tardiness by randomised greedy; sizes jobs, switches nodes",
      .params = andreas_params(),
      .make = make_andreas};
}

}  // namespace berth
