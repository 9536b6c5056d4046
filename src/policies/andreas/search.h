// The randomised greedy with local search: many constructions, the best of them improved. The first
// is without chance, so the result never loses to the plain greedy; if jobs run already, the second
// leaves them where they are. Every construction has a generator of its own, seeded by its number:
// they may be evaluated in any order, or at once, with the same result.
//
// The local search goes on by small moves as long as the score falls: move a job to another node or
// size, shrink a running job for a postponed one, exchange a postponed job with a running one, swap
// two running ones; on request also postpone a running one. Gangs over several nodes stay as they
// are. Deterministic.
#pragma once

#include <cstdint>
#include <limits>

#include "policies/andreas/greedy.h"
#include "policies/andreas/layout.h"

namespace berth::andreas {

struct LocalSearchOptions {
  std::int64_t sweeps = 100;                                       // rounds at most
  std::int64_t budget = std::numeric_limits<std::int64_t>::max();  // moves tried at most
  bool may_postpone = false;  // running jobs, because they run cheaper later
};

struct SearchOptions {
  std::int64_t iterations = 1000;
  LocalSearchOptions local;
  std::uint64_t seed = 1;
  double best_share = kBestShare;
};

/// Construction number `iteration` in an empty layout.
void construct(Layout& layout, std::uint64_t seed, std::int64_t iteration,
               double best_share = kBestShare);

[[nodiscard]] Solution search(Layout& layout, const SearchOptions& options);

}  // namespace berth::andreas
