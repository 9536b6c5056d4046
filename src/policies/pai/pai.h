// The scheduler of the PAI study (NSDI 2022): shortest predicted run time first, and high-end
// devices kept for the jobs that make use of them.
//
// Predictions come from the run's estimator, by default the recurrence of user, name and GPUs. A
// job that has waited five times its prediction (an hour at least) goes first. A job is "high" if
// it runs at least 1.5 times as fast on the high-end type as on the weakest, or its memory fits
// nowhere else; the others are packed on the rest and borrow high-end devices only beyond the
// reserve.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry pai_entry();

}  // namespace berth
