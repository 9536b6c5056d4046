// Shockwave (NSDI 2023): fair and efficient by planning ahead. Rounds of two minutes; a window of
// them is planned at once (window.h) to maximise Nash welfare, each job weighted by a power of its
// predicted finish-time fairness, less the makespan that remains.
//
// Rigid gangs, one kind of device. Assumes estimates of run times. Between rounds free devices go
// to jobs that fit, the most urgent first. A plan costs O(GPU-rounds log jobs) some fifty times
// over at most; it is made when the window is over, and when jobs or servers came or went, at the
// next round or, for many jobs, some rounds later.
#pragma once

#include <optional>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/common/equal_share.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/pass.h"
#include "policies/policy_entry.h"
#include "policies/shockwave/window.h"

namespace berth::shockwave {

struct Options {
  Duration round = std::chrono::seconds{120};
  double power = 5;  // of predicted finish-time fairness
  WindowRule window;
};

class Shockwave final : public Policy {
 public:
  explicit Shockwave(const Options& options) : options_(options), rounds_(options.round) {
    rounds_.stir(kTimeZero);
  }
  [[nodiscard]] std::string_view name() const noexcept override { return "shockwave"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime, .preempts = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View&, JobId) override { is_changed_ = true; }
  void on_capacity_change(const View&, NodeId) override { is_changed_ = true; }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  [[nodiscard]] WindowJob facts(const View& view, JobId job) const;
  [[nodiscard]] bool is_stale() const noexcept;
  void plan_ahead(const View& view);
  void begin_round(Pass& pass);
  bool place(Pass& pass, const std::vector<JobId>& chosen) const;
  void start_waiting(Plan& plan);

  Options options_;
  EqualShares shares_;
  Column<JobId, double> urgency_;  // as of the last plan
  std::vector<JobId> active_;      // the most urgent first as of the last plan, then newcomers
  std::vector<std::vector<JobId>> planned_;  // rounds that are left of the window, the next last
  std::size_t rounds_kept_ = 0;              // since the last plan
  bool is_changed_ = false;                  // jobs or servers came or went since the last plan
  bool is_waiting_ = false;                  // some job holds nothing
  Rounds rounds_;                            // the first one as soon as a job waits
  BlockedSet<ShapeId> blocked_;              // in a pass
};

}  // namespace berth::shockwave

namespace berth {

[[nodiscard]] PolicyEntry shockwave_entry();

}  // namespace berth
