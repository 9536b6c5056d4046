// Finish-time fairness in rounds: the form in which later simulators run "Themis". Each round finds
// the fractions of time that make the largest rho smallest, and the jobs furthest behind their
// fraction run. Rigid gangs, no auction, no leases.
//
// T_id of a job is what it would have taken on its n-th part of the cluster: for what it did in
// past rounds at the rate of that part then, for the rest at the present one. Assumes estimates of
// run times. Between rounds free devices go to jobs that fit, in the order of the round.
// A round costs O(50 jobs + jobs log jobs), an event between rounds the waiting jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/common/equal_share.h"
#include "policies/kit/blocked_set.h"

namespace berth::themis {

struct FairShareJob {
  double elapsed = 0;  // seconds since it came
  double left = 0;     // seconds of running it still needs, above zero
  double ideal = 0;    // T_id: seconds it would have taken on its own share, above zero
  std::int32_t gpus = 1;
};

struct TimeFractions {
  double rho = 0;
  std::vector<double> fractions;  // of the time, in [0, 1]; their GPUs fit
};
/// Found by bisection on rho, since a given rho says what each job needs: 50 x O(jobs).
[[nodiscard]] TimeFractions fair_time_fractions(std::span<const FairShareJob> jobs,
                                                std::int64_t gpus);

class FtfRounds final : public Policy {
 public:
  explicit FtfRounds(Duration round) : rounds_(round) { rounds_.stir(kTimeZero); }
  [[nodiscard]] std::string_view name() const noexcept override { return "ftf-fractional"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime, .preempts = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View&, JobId job) override { order_.push_back(job); }
  void on_departure(const View&, JobId job) override { std::erase(order_, job); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Row {
    std::int32_t rounds = 0;  // in which it ran
    double fraction = 0;
  };
  void set_order(const View& view);
  void start_waiting(Plan& plan);

  Rounds rounds_;
  EqualShares shares_;
  Column<JobId, Row> rows_;
  std::vector<JobId> order_;     // active jobs, the next to run first; newcomers at the end
  BlockedSet<ShapeId> blocked_;  // in a pass
};

}  // namespace berth::themis
