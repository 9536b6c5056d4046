// Improves a layout by small moves as long as its score falls: move a job to another node or size,
// shrink a running job for a postponed one, exchange a postponed job with a running one, swap two
// running ones; on request also postpone a running one. Gangs over several nodes stay as they are.
// Deterministic; ends after `sweeps` rounds or `budget` moves tried.
#pragma once

#include <cstdint>
#include <limits>

#include "policies/andreas/layout.h"

namespace berth::andreas {

struct LocalSearchOptions {
  std::int64_t sweeps = 100;
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();
  bool may_postpone = false;  // running jobs, because they run cheaper later
};

void improve(Layout& layout, const LocalSearchOptions& options);

}  // namespace berth::andreas
