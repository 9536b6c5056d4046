// The ways to run a job that are worth a look: sizes 1, 2, 4, ... between its smallest and its
// largest, and of those only the ones that nothing beats.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/aonline/room.h"

namespace berth::aonline {

/// Powers of two between the ends, the ends themselves and `asked`; ascending.
[[nodiscard]] std::vector<std::int64_t> sizes_between(std::int64_t least, std::int64_t most,
                                                      std::int64_t asked);
/// Without those for which another one of the same type takes less resource-time and no longer, and
/// without repetitions; in the order given.
[[nodiscard]] std::vector<Configuration> unbeaten(const std::vector<Configuration>& ways);

}  // namespace berth::aonline
