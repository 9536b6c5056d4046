// Capacity queues in the manner of YARN's capacity scheduler.
//
// Each queue is guaranteed a share of the cluster and may use idle GPUs beyond it, up to its
// largest share. Again and again the queue that is least full (used / guaranteed, ties by name) and
// has a job that keeps it within its largest share starts its first job; a queue whose first job
// does not fit is blocked for the rest of the pass (`pass=strict`) or tries its next shape
// (`skip`). With `preemption`, a first job that its queue's guarantee covers takes GPUs back from
// queues that are over theirs, most recent start first (policies/common/victims.h).
//
// Assumes nothing about durations. With one queue, no preemption and consolidated placement it is
// the "YARN-CS" baseline of the DL scheduling papers. Preemption is by checkpoint.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry capacity_entry();

}  // namespace berth
