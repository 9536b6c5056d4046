#include "policies/gavel/programs.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "policies/gavel/level_program.h"
#include "policies/gavel/water_fill.h"

namespace berth::gavel {

namespace {

/// Rows are divided by the class's best rate, so that coefficients stay near 1 for the solver.
void add_floors(const Fluid& fluid, const FluidColumns& columns, std::span<const double> floors,
                LinearProgram& program, std::optional<ColumnId> scale) {
  for (std::size_t i = 0; i < floors.size(); ++i) {
    if (floors[i] <= 0) continue;
    const double unit = fluid.classes[i].best_rate();
    std::vector<LinearTerm> row = columns.rate_terms(i, unit);
    const double floor = floors[i] / unit;
    if (scale) row.push_back({*scale, -floor});
    program.add_row(row, Bounds::at_least(scale ? 0 : floor));
  }
}

struct Item {
  double density;
  std::size_t at;
};

/// One type and no floors: the best worth per device first.
Shares by_density(const Fluid& fluid, std::span<const double> worth) {
  std::vector<Item> order;
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    if (fluid.classes[i].rates[0] > 0 && worth[i] > 0)
      order.push_back({worth[i] / fluid.classes[i].gpus, i});
  }
  std::ranges::sort(order, [](const Item& a, const Item& b) {
    return a.density != b.density ? a.density > b.density : a.at < b.at;
  });
  Shares shares{fluid};
  double left = fluid.gpus[0];
  for (const Item& item : order) {
    const FluidClass& one = fluid.classes[item.at];
    const double fraction = std::min(1.0, left / (one.count * one.gpus));
    shares.of_class(item.at, 0) = fraction;
    left -= fraction * one.count * one.gpus;
  }
  return shares;
}

std::vector<double> values_at(std::span<const FinishTerms> terms, double rho) {
  std::vector<double> values;
  for (const FinishTerms& one : terms)
    values.push_back(std::max((rho * one.isolated - one.elapsed) / one.left, 1e-9));
  return values;
}

/// The highest level everybody can have, again and again for other values: with one type without a
/// program, otherwise by one that is made once.
class FairLevels {
 public:
  explicit FairLevels(const Fluid& fluid) : fluid_(&fluid) {}
  [[nodiscard]] std::optional<Shares> at(std::vector<double> values) {
    if (!program_) {
      if (auto shares = highest_level(*fluid_, {.value = values})) return shares;
      program_.emplace(*fluid_, values);
    }
    for (std::size_t i = 0; i < values.size(); ++i) program_->set_value(i, values[i]);
    auto level = program_->solve();
    if (!level) return std::nullopt;
    return std::move(level->shares);
  }

 private:
  const Fluid* fluid_;
  std::optional<LevelProgram> program_;
};

}  // namespace

double largest_ratio(const Fluid& fluid, std::span<const FinishTerms> terms, const Shares& shares) {
  const std::vector<double> rates = effective_rates(fluid, shares);
  double rho = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!fluid.classes[i].can_run()) continue;
    rho = std::max(
        rho, (terms[i].elapsed + terms[i].left / std::max(rates[i], 1e-12)) / terms[i].isolated);
  }
  return rho;
}

Shares maximise(const Fluid& fluid, std::span<const double> worth, std::span<const double> floors) {
  if (fluid.types() == 1 && fluid.pairs.empty() && floors.empty()) return by_density(fluid, worth);
  LinearProgram program{Sense::Maximise};
  const FluidColumns columns{fluid, program};
  add_floors(fluid, columns, floors, program, std::nullopt);
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    for (std::size_t type = 0; type < fluid.types(); ++type) {
      if (const auto x = columns.column(i, type))
        program.set_cost(*x, worth[i * fluid.types() + type] * fluid.classes[i].count);
    }
  }
  const Solution solution = program.solve();
  return solution.status == SolveStatus::Optimal ? columns.shares(solution) : even_split(fluid);
}

Shares best_ratio(const Fluid& fluid, std::span<const double> prices,
                  std::span<const double> floors) {
  LinearProgram program{Sense::Maximise};
  // Columns stand for fractions times `scale`, which is chosen so that the cost is 1: the ratio is
  // linear then.
  const ColumnId scale = program.add_column(0, {0, kNoBound});
  const FluidColumns columns{fluid, program, scale};
  add_floors(fluid, columns, floors, program, scale);
  std::vector<LinearTerm> cost;
  for (std::size_t i = 0; i < fluid.classes.size(); ++i) {
    const FluidClass& one = fluid.classes[i];
    for (std::size_t type = 0; type < fluid.types(); ++type) {
      const auto x = columns.column(i, type);
      if (!x) continue;
      program.set_cost(*x, one.rates[type] * one.count);
      cost.push_back({*x, prices[type] * one.gpus * one.count});
    }
  }
  program.add_row(cost, Bounds::exactly(1));
  const Solution solution = program.solve();
  if (solution.status != SolveStatus::Optimal || solution[scale] <= 0) return even_split(fluid);
  return columns.shares(solution, solution[scale]);
}

std::vector<double> reachable(const Fluid& fluid, std::span<const double> wanted) {
  LinearProgram program{Sense::Minimise};
  const FluidColumns columns{fluid, program};
  std::vector<std::optional<ColumnId>> shortfall(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] <= 0 || !fluid.classes[i].can_run()) continue;
    const double unit = fluid.classes[i].best_rate();
    shortfall[i] = program.add_column(fluid.classes[i].count, {0, 1});
    std::vector<LinearTerm> row = columns.rate_terms(i, unit);
    row.push_back({*shortfall[i], wanted[i] / unit});
    program.add_row(row, Bounds::at_least(wanted[i] / unit));
  }
  std::vector<double> rates(wanted.size());
  const Solution solution = program.solve();
  if (solution.status != SolveStatus::Optimal) return rates;
  constexpr double kHair = 1e-9;  // so that rounding leaves them feasible
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (shortfall[i]) rates[i] = wanted[i] * std::max(0.0, 1 - kHair - solution[*shortfall[i]]);
  }
  return rates;
}

Shares fair_finish(const Fluid& fluid, std::span<const FinishTerms> terms, int max_levels) {
  Shares shares;
  if (fluid.pairs.empty() && everybody_fits(fluid, shares)) return shares;
  double rho = largest_ratio(fluid, terms, even_split(fluid));
  // At a ratio rho a job's level is its rate over the rate it needs to end at rho. The shares with
  // the highest level have a smaller largest ratio, from which the next step begins.
  FairLevels levels{fluid};
  constexpr int kMaxSteps = 60;  // it converges in a few; this is for rounding that never settles
  for (int step = 0; step < kMaxSteps; ++step) {
    const std::optional<Shares> level = levels.at(values_at(terms, rho));
    if (!level) break;
    const double less = largest_ratio(fluid, terms, *level);
    if (less >= rho * (1 - 1e-9)) break;
    rho = less;
  }
  return water_fill(fluid, {.value = values_at(terms, rho), .max_levels = max_levels});
}

}  // namespace berth::gavel
