// What the jobs of the OASiS study are worth, and the small instances of which the best schedule
// can be computed.
#pragma once

#include "base/rng.h"
#include "lab/reproduction.h"
#include "policies/oasis/utility.h"

namespace berth {

inline constexpr double kSoft = 0.5;  // steepness of a sensitive job's utility, per slot
inline constexpr double kHard = 5;    // of a critical one

struct OasisMix {
  std::size_t jobs = 300;
  double critical = 0.35;  // share of jobs
  double insensitive = 0.1;
};

/// As in the paper: value 1 to 100, target 1 to 15 slots after arrival.
[[nodiscard]] oasis::Utility draw_oasis_utility(const OasisMix& mix, Rng& rng);

/// The optimum of the offline problem over what OASiS gets, as a row of the table.
[[nodiscard]] Result<ReproducedFigure> oasis_against_optimum(const ReproduceOptions& options);

}  // namespace berth
