// Philly (ATC 2019): virtual clusters with quotas of GPUs, gangs, locality that is relaxed while a
// job waits, and preemption between virtual clusters when one is kept from its quota.
//
// Virtual clusters are served by used / quota, what one leaves another may use. Inside one, jobs
// come in order of arrival, and one that cannot be placed does not hold up those behind it. A job
// whose node is lost goes to the head of its queue. So does a job whose attempt failed by what the
// cluster did; it keeps away from the servers of that attempt for a while. Other failures are
// final. A pass costs O(waiting jobs), but each (size, level) that found no place is tried once.
#pragma once

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] PolicyEntry philly_entry();

}  // namespace berth
