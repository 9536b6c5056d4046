#include "policies/oasis/entry.h"

#include "policies/oasis/oasis.h"

namespace berth {

namespace {

Result<void> read_prices(const Params& params, oasis::Options& options) {
  BERTH_TRY(options.price_low, params.number("price_low", 0, 1e12));
  BERTH_TRY(options.price_high, params.number("price_high", 0, 1e12));
  if ((options.price_low > 0) != (options.price_high > 0) || options.price_low > options.price_high)
    return params.wrong("price_high", "must be given with price_low, and be no less");
  return {};
}

Result<void> read_utility(const Params& params, oasis::Options& options) {
  BERTH_TRY(const std::size_t value, params.choice("value", {"weight", "work"}));
  options.value_by_work = value == 1;
  BERTH_TRY(options.sensitivity, params.number("sensitivity", 0, 1000));
  BERTH_TRY(options.critical, params.number("critical", 0, 1000));
  BERTH_TRY(options.target, params.number("target", 0, 1e6));
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  oasis::Options options;
  BERTH_TRY(options.slot, params.duration("slot"));
  if (options.slot <= Duration::zero()) return params.wrong("slot", "must be more than zero");
  BERTH_TRY(options.horizon, params.integer("horizon", 1, 100'000));
  BERTH_TRY(options.units, params.integer("units", 1, 100'000));
  BERTH_TRY_VOID(read_utility(params, options));
  BERTH_TRY_VOID(read_prices(params, options));
  BERTH_TRY(options.reject_to_besteffort, params.flag("reject_to_besteffort"));
  BERTH_TRY(options.ahead, params.flag("ahead"));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.servers, parameter_servers(params));
  return std::make_unique<oasis::Oasis>(entry.name, options);
}

std::vector<ParamSpec> all_params() {
  std::vector<ParamSpec> params{
      {"slot", "10m", "seconds of a slot: numbers of GPUs change at its beginning only"},
      {"horizon", "200", "slots ahead in which schedules are made"},
      {"value", "weight", "what a job is worth: its weight, or work: its weight times GPU-slots"},
      {"sensitivity", "0.1", "steepness of utility of jobs without a hard deadline, per slot"},
      {"critical", "5", "steepness of utility of jobs with a hard deadline, per slot"},
      {"target", "15", "slots after its shortest run time at which half a job's value is left"},
      {"price_low", "0", "price of an idle GPU-slot; 0 = learnt from the jobs seen"},
      {"price_high", "0", "price of the last GPU-slot; 0 = learnt from the jobs seen"},
      {"reject_to_besteffort", "off", "refused jobs run on GPUs that nobody was promised"},
      {"ahead", "off", "accepted jobs run on GPUs that nobody was promised until their slots come",
       "on"},
      {"units", "128", "parts into which work is cut where speed is not proportional to GPUs"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  for (ParamSpec& spec : parameter_server_params()) params.push_back(std::move(spec));
  return params;
}

}  // namespace

PolicyEntry oasis_entry() {
  return {
      .name = "oasis",
      .summary = "online primal-dual: accepts a job if it is worth the price of its best schedule",
      .params = all_params(),
      .make = make};
}

}  // namespace berth
