// Chronus (SoCC 2021): jobs with a deadline are promised leases that meet it, or refused at once;
// jobs without one share what is left, shortest first.
//
// Time is cut into terms of equal length. Who runs is decided where a term begins: jobs whose plan
// (promises.h, lease_plan.h) has a lease there, then best-effort jobs by least work left
// (term_choice.h). A lease that is renewed costs nothing; in between, idle GPUs go to jobs that
// fit. Leases are placed in aligned blocks and push best-effort jobs aside, which may move; those
// are placed by the run's placement (placing.h) and, if distance costs speed, moved closer together
// (closeness.h).
//
// Assumes: run times are estimated, and stopping and starting again costs at most `restart`, which
// every lease has room for. A strict job that turns out longer than promised goes on as best
// effort; a soft one gets the next later deadline that can be promised. A boundary costs O(promised
// jobs x terms) at worst, usually O(jobs that change).
#pragma once

#include <cstddef>
#include <optional>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/chronus/closeness.h"
#include "policies/chronus/term_choice.h"
#include "policies/policy_entry.h"

namespace berth::chronus {

class Chronus final : public Policy {
 public:
  explicit Chronus(const Options& options) : options_(options) {}
  Chronus(const Chronus&) = delete;  // its parts refer to each other
  Chronus& operator=(const Chronus&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "chronus"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::RunTime | Need::Deadline | Need::Profile,
            .preempts = true,
            .may_refuse = options_.unmet == Unmet::Refused};
  }
  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override {
    return promises_.admit(view, job);
  }
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  [[nodiscard]] bool needs_term() const noexcept;
  void begin_term(Pass& pass);
  void refresh_promises(Pass& pass);
  void stop_others(Pass& pass, const std::set<JobId>& jobs);
  void fill(Pass& pass);
  void fill_from(Pass& pass, WaitingByShape& queue);

  Options options_;
  Rounds terms_{options_.lease};
  Promises promises_{options_, terms_};
  Roster roster_{options_, promises_};
  TermChoice choice_{options_, promises_, roster_};
  Placing placing_{options_, promises_, roster_};
  Closeness closeness_{options_, roster_, placing_};
  std::size_t active_ = 0;
  bool may_improve_ = false;  // distance costs speed, and devices came back since the last term
};

}  // namespace berth::chronus

namespace berth {

[[nodiscard]] PolicyEntry chronus_entry();

}  // namespace berth
