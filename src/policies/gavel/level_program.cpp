#include "policies/gavel/level_program.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace berth::gavel {

namespace {

constexpr double kPositive = 1e-9;  // a dual price above this is one

}  // namespace

FluidColumns::FluidColumns(const Fluid& fluid, LinearProgram& program,
                           std::optional<ColumnId> scale)
    : fluid_(&fluid),
      classes_(fluid.classes.size() * fluid.types()),
      pairs_(fluid.pairs.size() * fluid.types()) {
  add_columns(program, !scale.has_value());
  add_time_rows(program, scale);
  add_device_rows(program, scale);
}

void FluidColumns::add_columns(LinearProgram& program, bool bounded) {
  const Bounds bounds{0, bounded ? 1 : kNoBound};
  const std::size_t types = fluid_->types();
  for (std::size_t i = 0; i < fluid_->classes.size(); ++i) {
    for (std::size_t type = 0; type < types; ++type) {
      if (fluid_->classes[i].rates[type] > 0)
        classes_[i * types + type] = program.add_column(0, bounds);
    }
  }
  for (std::size_t i = 0; i < fluid_->pairs.size(); ++i) {
    for (std::size_t type = 0; type < types; ++type) {
      if (fluid_->pairs[i].first_rates[type] > 0 && fluid_->pairs[i].second_rates[type] > 0)
        pairs_[i * types + type] = program.add_column(0, bounds);
    }
  }
}

void FluidColumns::add_time_rows(LinearProgram& program, std::optional<ColumnId> scale) const {
  const std::size_t types = fluid_->types();
  std::vector<std::vector<LinearTerm>> rows(fluid_->classes.size());
  for (std::size_t type = 0; type < types; ++type) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (const auto x = classes_[i * types + type]) rows[i].push_back({*x, 1});
    }
    for (std::size_t i = 0; i < fluid_->pairs.size(); ++i) {
      const auto x = pairs_[i * types + type];
      if (!x) continue;
      rows[fluid_->pairs[i].first].push_back({*x, 1});
      rows[fluid_->pairs[i].second].push_back({*x, 1});
    }
  }
  for (std::vector<LinearTerm>& row : rows) {
    // A single column is bounded by 1 already.
    if (row.empty() || (row.size() == 1 && !scale)) continue;
    if (scale) row.push_back({*scale, -1});
    program.add_row(row, Bounds::at_most(scale ? 0 : 1));
  }
}

void FluidColumns::add_device_rows(LinearProgram& program, std::optional<ColumnId> scale) const {
  const std::size_t types = fluid_->types();
  for (std::size_t type = 0; type < types; ++type) {
    std::vector<LinearTerm> row;
    const double unit = std::max(1.0, fluid_->gpus[type]);
    for (std::size_t i = 0; i < fluid_->classes.size(); ++i) {
      const FluidClass& one = fluid_->classes[i];
      if (const auto x = classes_[i * types + type])
        row.push_back({*x, one.count * one.gpus / unit});
    }
    for (std::size_t i = 0; i < fluid_->pairs.size(); ++i) {
      if (const auto x = pairs_[i * types + type])
        row.push_back({*x, fluid_->classes[fluid_->pairs[i].first].gpus / unit});
    }
    if (row.empty()) continue;
    const double devices = fluid_->gpus[type] / unit;
    if (scale) row.push_back({*scale, -devices});
    program.add_row(row, Bounds::at_most(scale ? 0 : devices));
  }
}

std::vector<LinearTerm> FluidColumns::rate_terms(std::size_t at, double unit) const {
  const std::size_t types = fluid_->types();
  std::vector<LinearTerm> terms;
  for (std::size_t type = 0; type < types; ++type) {
    if (const auto x = classes_[at * types + type])
      terms.push_back({*x, fluid_->classes[at].rates[type] / unit});
  }
  for (std::size_t i = 0; i < fluid_->pairs.size(); ++i) {
    const FluidPair& pair = fluid_->pairs[i];
    if (pair.first != at && pair.second != at) continue;
    const std::vector<double>& rates = pair.first == at ? pair.first_rates : pair.second_rates;
    for (std::size_t type = 0; type < types; ++type) {
      if (const auto x = pairs_[i * types + type]) terms.push_back({*x, rates[type] / unit});
    }
  }
  return terms;
}

Shares FluidColumns::shares(const Solution& solution, double scale) const {
  Shares shares{*fluid_};
  const std::size_t types = fluid_->types();
  const auto fraction = [&](std::optional<ColumnId> x) {
    return x ? std::clamp(solution[*x] / scale, 0.0, 1.0) : 0.0;
  };
  for (std::size_t type = 0; type < types; ++type) {
    for (std::size_t i = 0; i < fluid_->classes.size(); ++i)
      shares.of_class(i, type) = fraction(classes_[i * types + type]);
    for (std::size_t i = 0; i < fluid_->pairs.size(); ++i)
      shares.of_pair(i, type) = fraction(pairs_[i * types + type]);
  }
  return shares;
}

LevelProgram::LevelProgram(const Fluid& fluid, std::span<const double> value)
    : fluid_(&fluid),
      z_(program_.add_column(1, {0, kNoBound})),
      columns_(fluid, program_),
      rows_(fluid.classes.size()) {
  BERTH_CHECK(value.size() == fluid.classes.size(), "every class has a value");
  double unit = kNoBound;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!fluid.classes[i].can_run()) continue;
    BERTH_CHECK(value[i] > 0, "what a class can reach is worth something to it");
    rows_[i].exists = true;
    rows_[i].value = value[i];
    rows_[i].best_rate = fluid.classes[i].best_rate();
    unit = std::min(unit, value[i] * rows_[i].best_rate);
  }
  if (std::isfinite(unit)) unit_ = unit;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!row.exists) continue;
    std::vector<LinearTerm> terms = columns_.rate_terms(i, row.best_rate);
    terms.push_back({z_, -rise_of(row)});
    row.id = program_.add_row(terms, Bounds::at_least(0));
  }
}

void LevelProgram::set_value(std::size_t at, double value) {
  Row& row = rows_[at];
  if (!row.exists) return;
  row.value = value;
  program_.set_coefficient(row.id, z_, -rise_of(row));
}

void LevelProgram::set_weight(std::size_t at, double weight) {
  Row& row = rows_[at];
  if (!row.exists || row.weight == weight) return;
  row.weight = weight;
  program_.set_coefficient(row.id, z_, -rise_of(row));
}

void LevelProgram::set_base(std::size_t at, double base) {
  Row& row = rows_[at];
  if (!row.exists) return;
  row.base = base;
  program_.set_bounds(row.id, Bounds::at_least(base / (row.value * row.best_rate)));
}

std::optional<Level> LevelProgram::solve() {
  const Solution solution = program_.solve();
  if (solution.status != SolveStatus::Optimal) return std::nullopt;
  Level level{.z = solution[z_] * unit_,
              .shares = columns_.shares(solution),
              .is_bound = std::vector<bool>(rows_.size())};
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].exists || rows_[i].weight == 0) continue;
    const double price = std::abs(solution.prices[static_cast<std::size_t>(rows_[i].id.value)]);
    level.is_bound[i] = price * rise_of(rows_[i]) > kPositive;
  }
  return level;
}

std::optional<Shares> LevelProgram::solve_sum() {
  program_.set_cost(z_, 0);
  program_.set_bounds(z_, Bounds::exactly(0));
  std::vector<double> costs(static_cast<std::size_t>(program_.columns()));  // pairs count twice
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!row.exists || row.weight == 0) continue;
    for (const LinearTerm& term : columns_.rate_terms(i, row.best_rate))
      costs[static_cast<std::size_t>(term.column.value)] +=
          term.coefficient * fluid_->classes[i].count;
  }
  for (std::int32_t i = 0; i < program_.columns(); ++i) {
    if (costs[static_cast<std::size_t>(i)] > 0)
      program_.set_cost(ColumnId{i}, costs[static_cast<std::size_t>(i)]);
  }
  const Solution solution = program_.solve();
  if (solution.status != SolveStatus::Optimal) return std::nullopt;
  return columns_.shares(solution);
}

}  // namespace berth::gavel
