// Who runs in the coming term, by numbers alone: jobs with a lease there, then best-effort jobs on
// what is left: those that have waited too long, those for whom leases made way, then by least
// work left (or service). Where they run is for placing.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan.h"
#include "policies/chronus/promises.h"
#include "policies/chronus/roster.h"

namespace berth::chronus {

class TermChoice {
 public:
  TermChoice(const Options& options, Promises& promises, Roster& roster)
      : options_(options), promises_(promises), roster_(roster) {}
  void begin(const View& view) { is_chosen_.resize(view.jobs.size()); }

  void make(const View& view, const Plan& plan);
  [[nodiscard]] bool has(JobId job) const noexcept { return is_chosen_[job]; }
  [[nodiscard]] const std::vector<JobId>& leased() const noexcept { return leased_; }
  /// In the order in which they were chosen; some of them run already.
  [[nodiscard]] const std::vector<JobId>& best_effort() const noexcept { return best_effort_; }

 private:
  void clear();
  void invite(const View& view, const Plan& plan);
  void invite_to(const View& view, const Plan& plan, PoolId pool);
  [[nodiscard]] std::vector<JobId> shortest_in(const View& view, const Plan& plan, PoolId pool);
  void choose_leases(const View& view);
  void choose_best_effort(const View& view, const Plan& plan);
  void choose_from(const View& view, WaitingByShape& queue, const OrderKey* before);
  bool choose(const View& view, JobId job, std::optional<PoolId> preferred);

  const Options& options_;
  Promises& promises_;
  Roster& roster_;
  std::vector<JobId> leased_;
  std::vector<JobId> best_effort_;
  std::vector<JobId> invited_;  // best effort for whom leases made way, ascending
  Column<JobId, bool> is_chosen_;
  std::vector<std::int64_t> room_;  // GPUs left, by pool
  std::vector<OrderKey> order_;     // scratch
};

}  // namespace berth::chronus
