#include "policies/sia/entry.h"

#include "policies/goodput/goodput_params.h"
#include "policies/sia/sia.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  sia::Options options;
  BERTH_TRY(options.goodput, goodput_options(params));
  BERTH_TRY(options.interval, params.duration("interval"));
  if (options.interval <= Duration::zero())
    return params.wrong("interval", "must be more than zero");
  BERTH_TRY(options.costs.p, params.number("p", -100, 100));
  if (options.costs.p == 0) return params.wrong("p", "must not be zero");
  BERTH_TRY(options.costs.none, params.number("lambda", 0, 3000));
  BERTH_TRY(const std::int64_t iterations, params.integer("iterations", 1, 100'000));
  options.limits.iterations = static_cast<std::int32_t>(iterations);
  BERTH_TRY(const std::int64_t exact, params.integer("exact_jobs", 0, 10'000));
  options.limits.exact_jobs = static_cast<std::int32_t>(exact);
  BERTH_TRY(options.limits.search_nodes, params.integer("search_nodes", 0, 1'000'000'000));
  BERTH_TRY(const std::size_t known, params.choice("gangs", {"known", "bootstrapped"}));
  options.knowledge = known == 0 ? sia::Knowledge::All : sia::Knowledge::Bootstrapped;
  return std::make_unique<sia::Sia>(entry.name, options);
}

}  // namespace

PolicyEntry sia_entry() {
  std::vector<ParamSpec> params = goodput_params();
  const std::vector<ParamSpec> own{
      {"p", "-0.5", "power of the utilities: 1 = their sum, below zero = fairer"},
      {"lambda", "1.1", "what a job without GPUs costs"},
      {"gangs", "known",
       "known: goodput of gangs as the model says; bootstrapped: on a type where the job never had "
       "several GPUs as it scaled elsewhere"},
      {"iterations", "100", "steps of the prices per GPU type"},
      {"exact_jobs", "30", "jobs up to which the exact search is tried"},
      {"search_nodes", "20000", "it may visit"}};
  params.insert(params.end(), own.begin(), own.end());
  return {
      .name = "sia",
      .summary = "elastic, batch, GPUs and device type by goodput; an integer program every round",
      .params = std::move(params),
      .make = make};
}

}  // namespace berth
