// EASY backfill: the head of the queue holds one reservation, others may jump if they do not delay
// it.
//
// The head's start is promised for the moment when, by the estimates, enough running jobs have
// ended (the shadow). A later job starts now if it will be over by then, or if it only uses GPUs
// that the head will not need (extra). Everything is recomputed at each pass. Only the head is
// protected.
//
// Needs an estimate of duration. A job that outlives its estimate is expected to end within a
// second, and may be killed (`kill_overrun`). While one runs on, the promise moves, and the policy
// wakes up whenever that may let somebody else go first. Where gangs must be consolidated or cores
// are limited, "fits" and the shadow are tested by placing the head on the future free map instead
// of counting GPUs.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry easy_entry();

}  // namespace berth
