// Non-preemptive list scheduling: waiting jobs in order of a key; what is started runs to its end.
//
//   fifo      arrival order, stops at the first job that does not fit (strict)
//   fifo-skip arrival order, goes on to the next that fits
//   sjf       shortest estimated run time first
//   smallest  fewest GPUs first
//
// A pass looks at one head per request shape, so its cost does not grow with the queue.
#pragma once

#include <vector>

#include "policies/policy_entry.h"

namespace berth {

[[nodiscard]] std::vector<PolicyEntry> list_order_entries();

}  // namespace berth
