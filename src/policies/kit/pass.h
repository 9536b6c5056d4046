// One call of decide(): what the policy sees, what it writes and its random numbers, together, so
// that they are handed on as one. Whatever is tried and given up is undone by the plan, books
// included (Plan::on_rollback), never by the policy.
#pragma once

#include <utility>
#include <vector>

#include "base/rng.h"
#include "core/plan.h"
#include "core/view.h"

namespace berth {

struct Pass {
  const View& view;
  Plan& plan;
  Rng& rng;

  /// What `change` plans stays if it answers true; otherwise it never was.
  template <class Change>
  bool attempt(Change&& change) {
    const Plan::Mark mark = plan.mark();
    if (std::forward<Change>(change)()) return true;
    plan.rollback(mark);
    return false;
  }
};

/// A copy of the devices a job holds: those in the plan move when the plan changes.
[[nodiscard]] inline std::vector<Slice> devices_of(const Plan& plan, JobId job) {
  const auto slices = plan.slices(job);
  return {slices.begin(), slices.end()};
}

}  // namespace berth
