#include "policies/elasticflow/entry.h"

#include "policies/elasticflow/elasticflow.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  elasticflow::ElasticFlowOptions options;
  BERTH_TRY(options.slot, params.duration("slot"));
  if (options.slot <= Duration::zero()) return params.wrong("slot", "must be more than zero");
  BERTH_TRY(options.slack, params.number("slack", 1, 100));
  BERTH_TRY(const auto unmet, params.choice("unmet", {"refuse", "best-effort"}));
  options.refuses = unmet == 0;
  BERTH_TRY(options.elastic, elastic_rule(params));
  return std::make_unique<elasticflow::ElasticFlow>(options);
}

std::vector<ParamSpec> params_of_elasticflow() {
  std::vector<ParamSpec> params{
      {"slot", "60", "seconds between two changes of size, aligned to time zero"},
      {"slack", "1.05", "factor on the believed work left, against wrong estimates and restarts"},
      {"unmet", "refuse", "strict deadline that cannot be promised: refuse or best-effort"}};
  for (ParamSpec& one : elastic_params()) params.push_back(std::move(one));
  return params;
}

}  // namespace

PolicyEntry elasticflow_entry() {
  return {.name = "elasticflow",
          .summary =
              "elastic jobs with deadlines on the fewest GPUs that are in time; the rest to "
              "whoever gains",
          .params = params_of_elasticflow(),
          .make = make};
}

}  // namespace berth
