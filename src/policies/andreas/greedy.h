// One construction: jobs by pressure, each by its cheapest choice in time (or its fastest if none
// is), on the tightest node in use or else on an empty one; then jobs take GPUs left over where
// that lowers the cost. With a generator neighbours in the order change places, the more likely
// the closer they are, and choices are drawn. A job that fits is never postponed.
// O(jobs placed * choices); what does not fit any more because all GPUs are taken is not looked at.
#pragma once

#include "base/rng.h"
#include "policies/andreas/layout.h"

namespace berth::andreas {

enum class Movers : std::uint8_t {
  Everybody,       // running jobs are placed anew like all others
  WaitingJobsOnly  // who runs, or is about to, stays if its nodes allow it
};

/// How often a draw takes the choice the greedy prefers.
inline constexpr double kBestShare = 0.5;

/// Fills an empty layout. `rng` null: without chance.
void build(Layout& layout, Movers movers, Rng* rng, double best_share = kBestShare);

/// The choice the greedy prefers; the present one if changing is not worth a restart.
[[nodiscard]] std::uint32_t preferred_choice(const Instance& instance, const Job& job);

/// Jobs take free GPUs of their node, the most pressing first, while the cost falls.
void take_leftovers(Layout& layout);

}  // namespace berth::andreas
