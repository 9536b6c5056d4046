// The randomised greedy with local search: many constructions, the best of them improved. The first
// is without chance, so the result never loses to the plain greedy; if jobs run already, the second
// leaves them where they are. Every construction has a generator of its own, seeded by its number:
// they may be evaluated in any order, or at once, with the same result.
#pragma once

#include <cstdint>

#include "policies/andreas/greedy.h"
#include "policies/andreas/layout.h"
#include "policies/andreas/local_search.h"

namespace berth::andreas {

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
