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
    : fluid_(&fluid), columns_(fluid.turns() * fluid.types()) {
  add_columns(program, {0, scale ? kNoBound : 1});
  add_time_rows(program, scale);
  add_device_rows(program, scale);
}

void FluidColumns::add_columns(LinearProgram& program, const Bounds& bounds) {
  for (std::size_t turn = 0; turn < fluid_->turns(); ++turn) {
    for (std::size_t type = 0; type < fluid_->types(); ++type) {
      bool can_run = true;
      fluid_->for_each_runner(turn, [&](std::size_t, const std::vector<double>& rates) {
        can_run = can_run && rates[type] > 0;
      });
      if (can_run) columns_[turn * fluid_->types() + type] = program.add_column(0, bounds);
    }
  }
}

/// Nobody runs more than all of the time.
void FluidColumns::add_time_rows(LinearProgram& program, std::optional<ColumnId> scale) const {
  std::vector<std::vector<LinearTerm>> rows(fluid_->classes.size());
  for (std::size_t type = 0; type < fluid_->types(); ++type) {
    for (std::size_t turn = 0; turn < fluid_->turns(); ++turn) {
      const auto x = column(turn, type);
      if (!x) continue;
      fluid_->for_each_runner(turn, [&](std::size_t at, const std::vector<double>&) {
        rows[at].push_back({*x, 1});
      });
    }
  }
  for (std::vector<LinearTerm>& row : rows) {
    // A single column is bounded by 1 already.
    if (row.empty() || (row.size() == 1 && !scale)) continue;
    if (scale) row.push_back({*scale, -1});
    program.add_row(row, Bounds::at_most(scale ? 0 : 1));
  }
}

/// No type has more devices than there are.
void FluidColumns::add_device_rows(LinearProgram& program, std::optional<ColumnId> scale) const {
  for (std::size_t type = 0; type < fluid_->types(); ++type) {
    std::vector<LinearTerm> row;
    const double unit = std::max(1.0, fluid_->gpus[type]);
    for (std::size_t turn = 0; turn < fluid_->turns(); ++turn) {
      if (const auto x = column(turn, type)) row.push_back({*x, fluid_->devices(turn) / unit});
    }
    if (row.empty()) continue;
    const double devices = fluid_->gpus[type] / unit;
    if (scale) row.push_back({*scale, -devices});
    program.add_row(row, Bounds::at_most(scale ? 0 : devices));
  }
}

std::vector<LinearTerm> FluidColumns::rate_terms(std::size_t at, double unit) const {
  std::vector<LinearTerm> terms;
  const auto add = [&](std::size_t turn) {
    fluid_->for_each_runner(turn, [&](std::size_t runner, const std::vector<double>& rates) {
      for (std::size_t type = 0; runner == at && type < fluid_->types(); ++type) {
        if (const auto x = column(turn, type)) terms.push_back({*x, rates[type] / unit});
      }
    });
  };
  add(at);
  for (std::size_t turn = fluid_->classes.size(); turn < fluid_->turns(); ++turn) add(turn);
  return terms;
}

Shares FluidColumns::shares(const Solution& solution, double scale) const {
  Shares shares{*fluid_};
  for (std::size_t turn = 0; turn < fluid_->turns(); ++turn) {
    for (std::size_t type = 0; type < fluid_->types(); ++type) {
      if (const auto x = column(turn, type))
        shares.of_turn(turn, type) = std::clamp(solution[*x] / scale, 0.0, 1.0);
    }
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
  // The worst off class sets the unit, so that z is about 1 at the first bottleneck.
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
  // The level is pinned at zero: everybody keeps its base, and costs say what counts above it.
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
