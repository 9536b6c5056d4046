#include "policies/qssf/qssf.h"

#include <unordered_map>

#include "policies/common/aged_queues.h"

namespace berth {
namespace qssf {

struct Options {
  PassRule pass = PassRule::Strict;            // inside a virtual cluster
  Duration patience = std::chrono::hours{24};  // zero: without end
};

class Qssf final : public Policy {
 public:
  explicit Qssf(const Options& options) : options_(options) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "qssf"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View&, JobId job) override { queues_.forget(job); }
  void on_requeue(const View& view, JobId job) override { on_arrival(view, job); }
  void decide(const View& view, Plan& plan, Rng&) override {
    queues_.promote(view.now);
    queues_.pass(view, plan, options_.pass, [&](JobId job) { return plan.try_start(job); });
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View&) override {
    return queues_.next_promotion();
  }

 private:
  Options options_;
  AgedQueues queues_;
  std::unordered_map<NameId, AgedQueues::LaneId> lane_of_;  // by virtual cluster; lookup only
};

void Qssf::on_arrival(const View& view, JobId job) {
  const AgedQueues::LaneId next{static_cast<std::uint32_t>(lane_of_.size())};
  const bool is_patient = options_.patience == Duration::zero();
  // Predicted once: a job that lost its node keeps its place.
  queues_.push(job, {.lane = lane_of_.try_emplace(view.request(job).queue, next).first->second,
                     .shape = view.jobs.shape[job],
                     .key = Int128{view.estimate(job).count()} * std::max(1, view.gpus(job)),
                     .patient_until = is_patient ? kNever : view.now + options_.patience});
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  Options options;
  BERTH_TRY(const bool backfill, params.flag("backfill"));
  options.pass = backfill ? PassRule::Skip : PassRule::Strict;
  BERTH_TRY(options.patience, params.duration("patience"));
  return std::make_unique<Qssf>(options);
}

}  // namespace
}  // namespace qssf

PolicyEntry qssf_entry() {
  return {
      .name = "qssf",
      .summary = "least predicted GPU time first in each virtual cluster; runs to the end (Helios)",
      .params =
          {{"backfill", "off",
            "on: go on to the next job when one does not fit; off: it blocks its virtual cluster"},
           {"patience", "24h", "a job that has waited so long goes first; 0: never"}},
      .make = qssf::make,
      .estimator = "qssf"};
}

}  // namespace berth
