#include "policies/drf/entry.h"

#include "policies/drf/drf.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto list, params.named_numbers("weights"));
  Drf::Weights weights;
  for (const auto& [user, numbers] : list) {
    if (numbers.size() != 1 || numbers[0] < 1e-3 || numbers[0] > 1e6) {
      return params.wrong("weights", "must be USER:weight with a weight from 0.001 to 1000000");
    }
    weights.emplace_back(user, numbers[0]);
  }
  return std::make_unique<Drf>(std::move(weights));
}

}  // namespace

PolicyEntry drf_entry() {
  return {.name = "drf",
          .summary = "the user with the smallest dominant share of GPUs, cores or memory first",
          .params = {{"weights", "",
                      "USER:weight, comma separated; a share is divided by it; others have 1"}},
          .make = make};
}

}  // namespace berth
