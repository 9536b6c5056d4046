// Dominant resource fairness by progressive filling (Ghodsi et al., NSDI 2011), with gangs as
// tasks.
//
// A user's dominant share is the largest part of any resource the user holds (GPUs, cores, memory:
// those the cluster declares), divided by the user's weight. Again and again the user with the
// smallest dominant share among those whose next job fits starts it; ties go by user name. A user's
// jobs start in order of arrival. Nothing is preempted, so shares even out as jobs end.
//
// Shares are exact rationals cut to 60 binary digits: equal shares compare equal whatever the
// resource. Users are indexed by the shape of their next job, so a pass does not grow with users or
// jobs.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry drf_entry();

}  // namespace berth
