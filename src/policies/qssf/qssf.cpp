#include "policies/qssf/qssf.h"

namespace berth {

void Qssf::on_arrival(const View& view, JobId job) {
  const auto lane = lane_of_.try_emplace(view.request(job).queue, lane_of_.size()).first->second;
  const bool patient = options_.patience == Duration::zero();
  // Predicted once; a job that lost its node keeps its place.
  queues_.push(job, {.lane = lane,
                     .shape = view.jobs.shape[job],
                     .key = Int128{view.estimate(job).count()} * std::max(1, view.gpus(job)),
                     .patient_until = patient ? kNever : view.now + options_.patience});
}

void Qssf::decide(const View& view, Plan& plan, Rng&) {
  queues_.promote(view.now);
  queues_.pass(view, plan, !options_.backfill, [&](JobId job) { return plan.try_start(job); });
}

PolicyEntry qssf_entry() {
  PolicyEntry entry{
      .name = "qssf",
      .summary = "least predicted GPU time first in each virtual cluster; runs to the end (Helios)",
      .params =
          {{"backfill", "off",
            "on: go on to the next job when one does not fit; off: it blocks its virtual cluster"},
           {"patience", "24h", "a job that has waited so long goes first; 0: never"}},
      .make = [](const PolicyEntry&, const Params& params) -> Result<std::unique_ptr<Policy>> {
        QssfOptions options;
        BERTH_TRY(options.backfill, params.flag("backfill"));
        BERTH_TRY(options.patience, params.duration("patience"));
        return std::make_unique<Qssf>(options);
      }};
  entry.estimator = "qssf";
  return entry;
}

}  // namespace berth
