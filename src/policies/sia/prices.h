// Prices per GPU type by subgradient steps: what each would have to cost for jobs that choose for
// themselves to stay within capacity. They give a lower bound of the program, and a good start.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "policies/sia/assignment.h"

namespace berth::sia {

struct Prices {
  std::vector<double> per_gpu;  // by type
  double bound = 0;             // no assignment costs less
};

/// The option a job of the row would choose at these prices; options.size() = none.
[[nodiscard]] std::size_t choice_at(const Row& row, std::span<const double> prices) noexcept;

/// What every row chooses at one step; shown where no type is overused by more than a quarter.
using SeeChoices = std::function<void(std::span<const std::size_t>)>;
[[nodiscard]] Prices find_prices(const Program& program, std::int32_t iterations,
                                 const SeeChoices& see);

}  // namespace berth::sia
