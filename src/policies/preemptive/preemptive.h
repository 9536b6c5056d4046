// Preemptive list scheduling: all active jobs in order of a key, the first that fit run, the others
// wait or are preempted.
//
//   srtf    least estimated work left               srsf    the same times GPUs
//   las     least time of holding devices           las-2d  the same times GPUs
//   edf     earliest deadline, jobs without one behind the others in order of arrival
//
// The reference is a walk over all active jobs with an empty cluster (baselines: "preemptive
// pass"). Here the same result is reached from the previous one: a waiting job is granted when the
// GPUs held by jobs before it leave room, the jobs behind it give way from the last one on, and
// whoever was evicted is looked at again.
//
// Counting decides who runs where GPUs are only counted. Elsewhere it is what a job needs at least:
// grants are placed in order, and one that finds no devices (too few on a node, too few cores)
// takes those of jobs behind it, least work lost first, as few as make room (make_way.h). These
// look for another place at their own turn, or wait. All others stay where they are. A job that
// finds no place even then waits, and the pass is made again without its shape. So nobody waits
// behind jobs of lower rank that could make room.
//
// A job whose user said that it is not to be preempted keeps its devices whatever its key is.
//
// Assumes: preemption is by checkpoint. LAS is looked at again every `quantum`, aligned to time
// zero, at arrivals and at departures. A pass for any other reason (live, an attempt that has begun
// or has saved) only fills what is free: whoever just began has more service than whoever waits,
// and would give way at once, for ever.
#pragma once

#include <vector>

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] std::vector<PolicyEntry> preemptive_entries();

}  // namespace berth
