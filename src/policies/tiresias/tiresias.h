// Tiresias (NSDI 2019): discretized two-dimensional attained service. Jobs sink through K queues as
// the GPU-seconds they have held cross thresholds; a higher queue runs first.
//
//   tiresias-l  inside a queue first come first served, and a runner is never evicted by a waiter
//               of its own queue: that is what keeps preemptions few
//   tiresias-g  inside every queue but the last by decreasing Gittins index against the service of
//               past jobs; falls back to the first rule until `min_samples` jobs have finished
//
// Knows nothing of durations. Never resizes or shares. A gang that is granted by count but finds no
// devices takes those of jobs it outranks (lower queues; by index its own queue too), least work
// lost first, as few as make room (make_way.h); these go elsewhere at once, or wait ahead of their
// queue. A job that is not to be preempted keeps its devices. A job that has waited
// `promote_knob` times as long as it has run since its last promotion goes back to the first queue
// (off by default).
//
// The pass is the incremental form: per queue the GPUs granted, the runners in order of their
// grants, and the waiters by shape; it equals a walk over all queues from an empty cluster.
#pragma once

#include <vector>

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] std::vector<PolicyEntry> tiresias_entries();

}  // namespace berth
