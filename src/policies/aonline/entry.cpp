#include "policies/aonline/entry.h"

#include "policies/aonline/aonline.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  aonline::Options options;
  BERTH_TRY(options.slot, params.duration("slot"));
  if (options.slot <= Duration::zero()) return params.wrong("slot", "must be more than zero");
  BERTH_TRY(options.windows.growth, params.number("beta", 1.01, 16));
  BERTH_TRY(options.windows.longest, params.integer("max_window", 1, 100'000));
  BERTH_TRY(options.early, params.flag("early"));
  BERTH_TRY(options.restart, params.flag("origin"));
  BERTH_TRY(options.ahead, params.flag("ahead"));
  BERTH_TRY(const std::size_t too_long, params.choice("too_long", {"run-on", "reject"}));
  options.runs_on = too_long == 0;
  BERTH_TRY(const std::int64_t exact, params.integer("exact_jobs", 0, 64));
  options.batch.exact_jobs = static_cast<std::size_t>(exact);
  BERTH_TRY(options.batch.steps, params.integer("exact_steps", 1, 1'000'000'000));
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.servers, parameter_servers(params));
  return std::make_unique<aonline::Aonline>(entry.name, options);
}

std::vector<ParamSpec> all_params() {
  std::vector<ParamSpec> params{
      {"slot", "10m", "seconds of a slot: planned starts lie on its multiples"},
      {"beta", "2", "length of a window against the one before"},
      {"max_window", "64", "slots of the longest window"},
      {"early", "on", "the next window begins as soon as the plan of the last one is done"},
      {"origin", "on", "windows begin at one slot again once the cluster was empty"},
      {"ahead", "off",
       "a job starts before its planned slot if all before it have and GPUs are free", "on"},
      {"too_long", "run-on", "jobs longer than the longest window: run-on beyond it, or reject"},
      {"exact_jobs", "8", "batches of at most so many jobs are solved by branch and bound"},
      {"exact_steps", "20000", "steps after which branch and bound takes the best it has"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  for (ParamSpec& spec : parameter_server_params()) params.push_back(std::move(spec));
  return params;
}

}  // namespace

PolicyEntry aonline_entry() {
  return {.name = "aonline",
          .summary = "batches in doubling windows: the most weight in each, type and size by job",
          .params = all_params(),
          .make = make};
}

}  // namespace berth
