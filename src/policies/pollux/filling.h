// Pollux's round where a pool is too large for the genetic algorithm: sizes first, then places.
//
// Sizes come from filling: one step after the other goes to the job that gains most per extra GPU,
// steps jumping over sizes that alone gain little. O(G log J) for G GPUs and J jobs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/pollux/pool_round.h"

namespace berth::pollux {

struct FillJob {
  std::vector<std::int32_t> sizes;  // rising, above zero
  std::vector<double> utility;      // of each size
};

/// GPUs by job; 0 = none. Maximises the sum of u^p for p > 0, minimises it for p < 0, step by step.
[[nodiscard]] std::vector<std::int32_t> water_fill(std::span<const FillJob> jobs, std::int64_t gpus,
                                                   double p);

/// True if anybody is not where it was.
bool optimise_by_filling(const PoolRound& round);

}  // namespace berth::pollux
