#include "policies/sia/prices.h"

#include <algorithm>
#include <cmath>

namespace berth::sia {

namespace {

constexpr double kNear = 0.25;  // of the capacity: what overuses more is not worth repairing

double price_of(const Option& option, std::span<const double> prices) {
  return option.cost + prices[option.type] * option.gpus;
}

/// The steepest way any GPU saves cost: prices beyond it leave nobody a choice.
double highest_price(const Program& program) {
  double highest = 0;
  for (const Row& row : program.rows) {
    for (const Option& option : row.options)
      highest = std::max(highest, (row.none - option.cost) / option.gpus);
  }
  return highest;
}

}  // namespace

std::size_t choice_at(const Row& row, std::span<const double> prices) noexcept {
  std::size_t best = row.options.size();
  double least = row.none;
  for (std::size_t i = 0; i < row.options.size(); ++i) {
    const double price = price_of(row.options[i], prices);
    if (price >= least) continue;
    least = price;
    best = i;
  }
  return best;
}

Prices find_prices(const Program& program, std::int32_t iterations, const SeeChoices& see) {
  const std::size_t types = program.capacity.size();
  const double highest = highest_price(program);
  std::vector<double> prices(types, 0);
  Prices best{.per_gpu = prices, .bound = -1e300};
  std::vector<std::size_t> choices(program.rows.size());
  std::vector<double> over(types);
  for (std::int32_t step = 0; step < iterations; ++step) {
    double bound = 0;
    for (std::size_t t = 0; t < types; ++t) {
      const auto capacity = static_cast<double>(program.capacity[t]);
      over[t] = -capacity;
      bound -= prices[t] * capacity;
    }
    for (std::size_t r = 0; r < program.rows.size(); ++r) {
      const Row& row = program.rows[r];
      choices[r] = choice_at(row, prices);
      const bool takes = choices[r] < row.options.size();
      bound += row.count * (takes ? price_of(row.options[choices[r]], prices) : row.none);
      if (takes) over[row.options[choices[r]].type] += row.count * row.options[choices[r]].gpus;
    }
    if (bound > best.bound) best = {prices, bound};
    bool near = true;
    bool settled = true;
    for (std::size_t t = 0; t < types; ++t) {
      const auto capacity = static_cast<double>(std::max<std::int64_t>(1, program.capacity[t]));
      // Relative to the capacity, in steps that shrink; halfway to the highest price at first.
      const double change = highest / (2 + step) * std::clamp(over[t] / capacity, -1.0, 1.0);
      const double next = std::clamp(prices[t] + change, 0.0, highest);
      settled = settled && next == prices[t];
      near = near && over[t] <= kNear * capacity;
      prices[t] = next;
    }
    if (near) see(choices);
    if (settled) break;
  }
  return best;
}

}  // namespace berth::sia
