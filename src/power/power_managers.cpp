#include "power/power_managers.h"

#include <fmt/format.h>

#include "power/ces.h"
#include "power/spare_nodes.h"

namespace berth {

namespace {

Result<std::unique_ptr<PowerManager>> make_ces(const Params& params) {
  using Method = DemandForecast::Method;
  constexpr std::int32_t kMost = 1'000'000;
  CesOptions options;
  BERTH_TRY(options.rule.history, params.whole("history", 1, kMost));
  BERTH_TRY(options.rule.future, params.whole("future", 1, kMost));
  BERTH_TRY(options.rule.fallen, params.number("fallen", 0, 1e9));
  BERTH_TRY(options.rule.forecast_below, params.number("forecast_below", 0, 1e9));
  BERTH_TRY(options.rule.buffer, params.whole("buffer", 0, kMost));
  BERTH_TRY(options.buffer_share, params.number("buffer_share", 0, 1));
  BERTH_TRY(options.rule.keep, params.whole("keep", 0, kMost));
  BERTH_TRY(options.rule.least_step, params.whole("least_step", 1, kMost));
  BERTH_TRY(options.rule.warm_up, params.whole("warm_up", 0, kMost));
  BERTH_TRY(options.tick, params.positive_duration("tick"));
  BERTH_TRY(options.forecast, params.choice<Method>("forecast", {{"trees", Method::Trees},
                                                                 {"naive", Method::Naive}}));
  return std::make_unique<Ces>(options);
}

}  // namespace

std::vector<ParamSpec> ces_params() {
  return {{"tick", "10m", "time between decisions"},
          {"history", "3", "ticks over which demand must have fallen before nodes go off"},
          {"future", "18", "ticks over which the forecast must stay lower"},
          {"fallen", "1", "nodes demand must lie below its recent mean"},
          {"forecast_below", "1", "nodes the forecast must lie below demand"},
          {"buffer", "6", "idle nodes kept on, of each device type"},
          {"buffer_share", "0.01", "and at least this share of the nodes of a type"},
          {"keep", "12", "ticks after a wake-up in which nothing is switched off"},
          {"least_step", "1", "fewer nodes are not worth switching off"},
          {"warm_up", "6", "first ticks, in which what is needed and the buffer stays on"},
          {"forecast", "trees",
           "trees: boosted trees once two weeks are known; naive: now and a week ago"}};
}

std::vector<ParamSpec> spare_params() {
  return {{"share", "0.02", "of the nodes of each device type that are kept back, rounded up"}};
}

Result<std::unique_ptr<PowerManager>> make_power_manager(std::string_view text) {
  if (text == "off") return nullptr;
  const std::size_t colon = text.find(':');
  const std::string name{text.substr(0, colon)};
  if (name != "ces" && name != "spare") {
    return fail(
        fmt::format("--power: no power manager is called '{}' (known: off, ces, spare)", name));
  }
  Settings settings;
  if (colon != std::string_view::npos) {
    BERTH_TRY(settings, parse_settings(text.substr(colon + 1), "--power " + name));
  }
  BERTH_TRY(const Params params,
            Params::make(name, name == "ces" ? ces_params() : spare_params(), settings,
                         {.setting = "--power " + name + ":", .see = "berth simulate --help"}));
  if (name == "ces") return make_ces(params);
  BERTH_TRY(const double share, params.number("share", 0, 1));
  return std::make_unique<SpareNodes>(share);
}

}  // namespace berth
