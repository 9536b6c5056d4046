// Fair share of GPU time over groups and users, with priorities.
//
// Order: class of the job, largest first; then the standing of its account (decayed GPU seconds
// per share, policies/fair_share/accounts.h): of its group or of a user without one, then of the
// user inside the group; then size if asked for; then submission. Waiting may raise the class.
//
// The first job that cannot start holds a reservation, so that large gangs do not starve; others
// go before it only if they do not delay it by the estimates (policies/common/reservation.h).
//
// Only that first job may take GPUs from others, and only as `preempt` allows:
//   by priority  from jobs of a lower class;
//   by share     from jobs of its class or a lower one whose account stands worse by a margin even
//                when the newcomer's GPUs are counted in advance.
// A victim may be preempted (interactive jobs and services never) and has run `min_run` since its
// last start; least work lost goes first. No loop: classes are fixed, and between equals a pair of
// accounts must pass each other by the margin twice before the first loses again what it took.
//
// Assumes estimates of run time for the reservation; preemption is by checkpoint.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry fair_share_entry();

}  // namespace berth
