#include "policies/goodput/goodput_params.h"

namespace berth {

std::vector<ParamSpec> goodput_params() {
  std::vector<ParamSpec> params{
      {"interval", "60", "seconds between two rounds, aligned to time zero"},
      {"restart", "30", "seconds a job pays when it is moved, resized or resumed"},
      {"batch", "adapt", "adapt: choose the batch of jobs whose limits are known; fixed: never"},
      {"growth", "2", "a job gets so many times the most GPUs it ever held; 0 = no limit"},
      {"min_two", "on", "one GPU with more than the first batch takes two sub-batches"},
      {"smoothing", "0.9", "weight of the past in the noise scale, per round"}};
  for (ParamSpec& spec : elastic_params()) params.push_back(std::move(spec));
  return params;
}

Result<GoodputOptions> goodput_options(const Params& params) {
  GoodputOptions options;
  BERTH_TRY(options.elastic, elastic_rule(params));
  BERTH_TRY(options.restart, params.duration("restart"));
  BERTH_TRY(const std::size_t batch, params.choice("batch", {"adapt", "fixed"}));
  options.adaptation = batch == 0 ? Adaptation::Batch : Adaptation::Fixed;
  BERTH_TRY(options.growth, params.number("growth", 0, 1000));
  BERTH_TRY(options.two_on_one, params.flag("min_two"));
  BERTH_TRY(options.smoothing, params.number("smoothing", 0, 0.999));
  return options;
}

}  // namespace berth
