// Which images of a disk a power loss may leave: for the pages that were written and not synced,
// every subset when they are few, a fair choice of subsets when they are many, and the last page
// torn between two sectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace berth::test {

struct CrashChoice {
  std::vector<bool> is_kept;     // page by page
  std::size_t torn_sectors = 0;  // of the last page only so many arrived; 0: it is as is_kept says
  friend auto operator<=>(const CrashChoice&, const CrashChoice&) = default;
};

struct CrashChoices {
  std::size_t all_subsets_up_to = 6;  // pages
  std::size_t random_subsets = 64;    // beyond
  bool torn = true;
};

/// No choice twice; in an order that depends on the draws only.
[[nodiscard]] std::vector<CrashChoice> crash_choices(std::size_t pages, const CrashChoices& how,
                                                     Rng& rng);

}  // namespace berth::test
