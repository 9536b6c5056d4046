// Quasi-shortest-service-first (Helios, SC 2021): within each virtual cluster the job with the
// least expected GPU time (GPUs times predicted run time) first; what is started runs to its end. A
// job that does not fit blocks its virtual cluster unless backfilling is on; one that has waited a
// day goes first. Predictions come from the run's estimator, by default Helios' own.
#pragma once

#include <string>
#include <unordered_map>

#include "core/policy.h"
#include "policies/common/aged_queues.h"
#include "policies/registry.h"

namespace berth {

struct QssfOptions {
  bool backfill = false;
  Duration patience = std::chrono::hours{24};  // zero: without end
};

class Qssf final : public Policy {
 public:
  explicit Qssf(const QssfOptions& options) : options_(options) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "qssf"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View&, JobId job) override { queues_.forget(job); }
  void on_requeue(const View& view, JobId job) override { on_arrival(view, job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View&) override {
    return queues_.next_promotion();
  }

 private:
  QssfOptions options_;
  AgedQueues queues_;
  std::unordered_map<NameId, std::size_t> lane_of_;  // by virtual cluster; lookup only
};

[[nodiscard]] PolicyEntry qssf_entry();

}  // namespace berth
