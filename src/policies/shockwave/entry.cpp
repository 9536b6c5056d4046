#include "policies/shockwave/entry.h"

#include "policies/shockwave/shockwave.h"

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  shockwave::Options options;
  BERTH_TRY(options.round, params.duration("round"));
  if (options.round <= Duration::zero()) return params.wrong("round", "must be more than zero");
  BERTH_TRY(const std::int64_t rounds, params.integer("window", 1, 1000));
  options.window.rounds = static_cast<std::int32_t>(rounds);
  BERTH_TRY(options.power, params.number("power", 0, 20));
  BERTH_TRY(options.window.makespan_weight, params.number("lambda", 0, 1e6));
  BERTH_TRY(const std::int64_t swap, params.integer("swap_jobs", 0, 1'000'000));
  options.window.swap_jobs = static_cast<std::size_t>(swap);
  return std::make_unique<shockwave::Shockwave>(options);
}

}  // namespace

PolicyEntry shockwave_entry() {
  return {
      .name = "shockwave",
      .summary =
          "welfare of all jobs planned over a window of rounds, weighted by finish-time fairness",
      .params = {{"round", "120", "seconds of a round, aligned to time zero"},
                 {"window", "20", "rounds planned at once"},
                 {"power", "5", "of a job's predicted finish-time fairness in its weight"},
                 {"lambda", "5",
                  "weight of the makespan that remains after the window, in windows"},
                 {"swap_jobs", "100", "with more jobs rounds are dealt and not improved"}},
      .make = make};
}

}  // namespace berth
