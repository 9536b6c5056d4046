// One call of decide(): what the policy sees, what it writes and its random numbers, handed on as
// one. Whatever is tried and given up is undone by the plan, never by the policy: state of the
// policy that changes with the plan joins its undo log (Plan::on_rollback).
#pragma once

#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/plan.h"
#include "core/view.h"

namespace berth {

/// What `change` plans stays if it answers true; otherwise it never was.
template <class Change>
bool attempt(Plan& plan, Change&& change) {
  const Plan::Mark mark = plan.mark();
  if (std::forward<Change>(change)()) return true;
  plan.rollback(mark);
  return false;
}

/// Moves or resizes a job: stops it and lets `start` start it again. If that answers false the job
/// stays as it is.
template <class Start>
bool try_restart(Plan& plan, JobId job, Reason reason, Start&& start) {
  return attempt(plan, [&] {
    plan.preempt(job, reason);
    return std::forward<Start>(start)();
  });
}

struct Pass {
  const View& view;
  Plan& plan;
  Rng& rng;

  template <class Change>
  bool attempt(Change&& change) {
    return berth::attempt(plan, std::forward<Change>(change));
  }
};

/// A copy of the devices a job holds: those in the plan move when the plan changes.
[[nodiscard]] inline std::vector<Slice> devices_of(const Plan& plan, JobId job) {
  const auto slices = plan.slices(job);
  return {slices.begin(), slices.end()};
}

}  // namespace berth
