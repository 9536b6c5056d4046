// Finish-time fairness in rounds: the form in which later simulators run "Themis". Each round finds
// the fractions of time that make the largest rho smallest (time_fractions.h), and those run who
// are furthest behind their fraction. Rigid gangs, no auction, no leases.
//
// T_id of a job is what it would have taken on its n-th part of the cluster: for what it did in
// past rounds at the rate of that part then, for the rest at the present one. Assumes estimates of
// run times. Between rounds free devices go to whoever fits, in the order of the round.
// A round costs O(50 jobs + jobs log jobs), an event between rounds the waiting jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"

namespace berth::themis {

class FtfRounds final : public Policy {
 public:
  explicit FtfRounds(Duration round) : rounds_(round) { rounds_.stir(kTimeZero); }
  [[nodiscard]] std::string_view name() const noexcept override { return "ftf-fractional"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime, .preempts = true};
  }
  void begin(const View& view) override { rows_.resize(view.jobs.size()); }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View&, JobId) override {}
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  struct Row {
    double ideal_done = 0;  // seconds its past work would have taken on its share
    Duration booked{};      // work up to which that is known
    std::int32_t rounds = 0;
    double fraction = 0;
  };
  void book(const View& view);
  void set_order(const View& view);
  void start_waiting(const View& view, Plan& plan);
  [[nodiscard]] double isolated(const View& view, JobId job) const;

  Rounds rounds_;
  std::vector<Row> rows_;      // by JobId
  std::vector<JobId> order_;   // active jobs, the next to run first; newcomers at the end
  std::vector<bool> blocked_;  // scratch, by ShapeId
};

}  // namespace berth::themis
