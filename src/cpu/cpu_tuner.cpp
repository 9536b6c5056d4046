#include "cpu/cpu_tuner.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/aware_tuner.h"
#include "cpu/quota_tuner.h"

namespace berth {
namespace {

constexpr Duration kLongestWait = std::chrono::seconds{60};

/// A policy that tracks who is on which server would look for a job where it put it.
Result<void> check_policy(const Policy& policy, const Settings& settings) {
  if (!policy.traits().shares_devices) return {};
  for (const auto& [key, value] : settings) {
    if (key != "wait" && key != "reschedule") continue;
    const auto time = parse_duration(value);
    if (time && *time == Duration::zero()) continue;
    return fail(
        fmt::format("--cpu aware:{}={}: policy '{}' tracks the jobs of its servers itself, so "
                    "nobody waits or moves for cores beside it (leave {} out)",
                    key, value, policy.name(), key));
  }
  return {};
}

Result<CpuTunerOptions> aware_options(const Settings& settings, const Policy& policy) {
  BERTH_TRY_VOID(check_policy(policy, settings));
  BERTH_TRY(const Params params,
            Params::make("aware", aware_params(), settings,
                         {.setting = "--cpu aware:", .see = "berth simulate --help"}));
  CpuTunerOptions options;
  BERTH_TRY(options.objective,
            params.choice<CpuObjective>("objective", {{"fair-floor", CpuObjective::FairFloor},
                                                      {"sum", CpuObjective::Sum},
                                                      {"maxmin", CpuObjective::MaxMin}}));
  BERTH_TRY(options.leftover,
            params.choice<CpuLeftover>(
                "leftover", {{"keep", CpuLeftover::Keep}, {"deal", CpuLeftover::RoundRobin}}));
  BERTH_TRY(options.place, params.flag("place"));
  BERTH_TRY(options.lend, params.flag("lend"));
  BERTH_TRY(options.wait, params.duration("wait"));
  BERTH_TRY(options.check_interval, params.positive_duration("check"));
  BERTH_TRY(options.reschedule_interval, params.duration("reschedule"));
  BERTH_TRY(options.move_cost, params.duration("move_cost"));
  BERTH_TRY(options.moved_share, params.number("moved_share", 0, 1));
  if (options.wait > kLongestWait) return params.wrong("wait", "no job waits for cores beyond 60s");
  const CpuTunerOptions suits = cpu_options_for(policy);
  options.wait = std::min(options.wait, suits.wait);
  if (suits.reschedule_interval == Duration::zero()) options.reschedule_interval = {};
  return options;
}

}  // namespace

CpuTunerOptions cpu_options_for(const Policy& policy) {
  CpuTunerOptions options;
  if (policy.traits().shares_devices) return options;
  options.wait = kLongestWait;
  options.reschedule_interval = std::chrono::minutes{10};
  return options;
}

std::vector<ParamSpec> aware_params() {
  return {{"objective", "fair-floor", "fair-floor (nobody below its share by GPUs), sum or maxmin"},
          {"leftover", "keep", "cores that help nobody: keep them free, or deal them out"},
          {"place", "on", "jobs start on servers that have the cores they want"},
          {"wait", "60s", "how long at most jobs wait for such a server"},
          {"lend", "on", "left over cores go to jobs that validate, for as long as they do"},
          {"check", "30s", "time between two samples of measured against believed speed"},
          {"reschedule", "10m", "time between two rounds of moves to idle cores; 0: never"},
          {"move_cost", "30s", "what such a move costs the job"},
          {"moved_share", "0.01", "of the running jobs, at most, in one round"}};
}

Result<std::unique_ptr<NodeTuner>> make_cpu_tuner(std::string_view mode,
                                                  const CpuTunerOptions& options) {
  if (mode == "shared") return std::make_unique<QuotaTuner>(CpuQuota::Shared);
  if (mode == "role") return std::make_unique<QuotaTuner>(CpuQuota::Role);
  if (mode == "bind") return std::make_unique<QuotaTuner>(CpuQuota::Bind);
  if (mode == "aware") return std::make_unique<AwareTuner>(options);
  return fail(fmt::format("--cpu: unknown mode '{}' (known: shared, role, bind, aware)", mode));
}

Result<std::unique_ptr<NodeTuner>> make_cpu_tuner(std::string_view text, const Policy& policy,
                                                  MeasuredSpeeds* measured) {
  const std::size_t colon = text.find(':');
  const std::string_view mode = text.substr(0, colon);
  if (colon == std::string_view::npos) {
    CpuTunerOptions suits = cpu_options_for(policy);
    suits.measured = measured;
    return make_cpu_tuner(mode, suits);
  }
  if (mode != "aware") {
    return fail(fmt::format(
        "--cpu {}: only aware takes options (as in aware:objective=sum,leftover=deal)", text));
  }
  BERTH_TRY(const Settings settings, parse_settings(text.substr(colon + 1), "--cpu aware"));
  BERTH_TRY(CpuTunerOptions options, aware_options(settings, policy));
  options.measured = measured;
  return make_cpu_tuner(mode, options);
}

}  // namespace berth
