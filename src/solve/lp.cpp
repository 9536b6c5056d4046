// Clp and Cbc behind a small face. Columns and rows are collected and handed over in one call; a
// second solve goes on from the last basis, by the dual simplex if only bounds have changed.

#include "solve/lp.h"

#include <algorithm>
#include <cmath>

#include <CbcHeuristic.hpp>
#include <CbcHeuristicFPump.hpp>
#include <CbcModel.hpp>
#include <CglGomory.hpp>
#include <CglKnapsackCover.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglProbing.hpp>
#include <ClpSimplex.hpp>
#include <ClpSolve.hpp>
#include <OsiClpSolverInterface.hpp>

#include "base/check.h"

namespace berth {
namespace {

// The solver has its own infinity.
double for_solver(double bound) noexcept {
  return std::isinf(bound) ? std::copysign(COIN_DBL_MAX, bound) : bound;
}

/// Rows and columns that the solver does not know yet. Handed over together: one by one each would
/// copy the whole matrix.
struct Pending {
  std::vector<double> cost, column_low, column_high;
  std::vector<CoinBigIndex> row_start{0};
  std::vector<int> row_column;
  std::vector<double> row_value, row_low, row_high;
};

// 3 is Clp's number for a limit of time or iterations.
SolveStatus status_of(const ClpSimplex& simplex) noexcept {
  if (simplex.isProvenOptimal()) return SolveStatus::Optimal;
  if (simplex.isProvenPrimalInfeasible()) return SolveStatus::Infeasible;
  if (simplex.isProvenDualInfeasible()) return SolveStatus::Unbounded;
  return simplex.status() == 3 ? SolveStatus::Stopped : SolveStatus::Failed;
}

}  // namespace

double Solution::gap() const noexcept {
  if (!has_values()) return kNoBound;
  const double distance = std::abs(bound - objective);
  return distance <= 1e-9 ? 0 : distance / std::max(std::abs(objective), 1e-9);
}

/// The solver always minimises; `sign` turns a maximum into a minimum.
struct LinearProgram::Model {
  double sign = 1;
  ClpSimplex simplex;
  Pending pending;
  std::vector<ColumnKind> kinds;
  std::int32_t rows = 0;
  bool has_basis = false;
  bool only_bounds_changed = true;  // since the basis: the dual simplex may go on from there

  void flush();
  [[nodiscard]] Solution relaxed(const SolveLimits& limits);
  [[nodiscard]] Solution answer_of_simplex() const;
  [[nodiscard]] Solution answer_without_columns() const;
  [[nodiscard]] Solution search(const SolveLimits& limits, std::span<const double> start);
  [[nodiscard]] Solution answer_of_search(const CbcModel& tree) const;
};

void LinearProgram::Model::flush() {
  if (!pending.cost.empty()) {
    simplex.addColumns(static_cast<int>(pending.cost.size()), pending.column_low.data(),
                       pending.column_high.data(), pending.cost.data(), nullptr, nullptr, nullptr);
    only_bounds_changed = false;
  }
  if (!pending.row_low.empty()) {
    simplex.addRows(static_cast<int>(pending.row_low.size()), pending.row_low.data(),
                    pending.row_high.data(), pending.row_start.data(), pending.row_column.data(),
                    pending.row_value.data());
  }
  pending = Pending{};
}

Solution LinearProgram::Model::answer_of_simplex() const {
  Solution solution;
  solution.status = status_of(simplex);
  if (solution.status != SolveStatus::Optimal) return solution;
  solution.objective = solution.bound = sign * simplex.objectiveValue();
  const auto count = static_cast<std::ptrdiff_t>(kinds.size());
  const double* values = simplex.primalColumnSolution();
  solution.values.assign(values, values + count);
  const double* prices = simplex.dualRowSolution();
  solution.prices.assign(prices, prices + rows);
  for (double& price : solution.prices) price *= sign;
  return solution;
}

/// Every row sums up to nothing. The solver itself does not survive a program of no columns and
/// rows.
Solution LinearProgram::Model::answer_without_columns() const {
  for (std::int32_t row = 0; row < rows; ++row) {
    if (simplex.rowLower()[row] > 0 || simplex.rowUpper()[row] < 0)
      return {.status = SolveStatus::Infeasible, .values = {}, .prices = {}};
  }
  return {.status = SolveStatus::Optimal,
          .values = {},
          .prices = std::vector<double>(static_cast<std::size_t>(rows))};
}

Solution LinearProgram::Model::relaxed(const SolveLimits& limits) {
  flush();
  if (kinds.empty()) return answer_without_columns();
  // Seconds depend on the machine. Who must decide the same everywhere limits nodes and sets the
  // seconds far beyond what the nodes take.
  simplex.setMaximumSeconds(limits.seconds);
  if (!has_basis) {
    ClpSolve how;
    how.setPresolveType(ClpSolve::presolveOn);
    simplex.initialSolve(how);
    // What presolve calls infeasible may be unbounded: the simplex itself tells them apart.
    if (status_of(simplex) != SolveStatus::Optimal && simplex.status() != 3) simplex.primal();
  } else if (only_bounds_changed) {
    simplex.dual();
  } else {
    simplex.primal();
  }
  const Solution solution = answer_of_simplex();
  // A basis of a failed solve would lead the next one astray.
  has_basis = solution.status == SolveStatus::Optimal;
  only_bounds_changed = true;
  return solution;
}

Solution LinearProgram::Model::answer_of_search(const CbcModel& tree) const {
  Solution solution;
  const double* values = tree.bestSolution();
  solution.bound = sign * tree.getBestPossibleObjValue();
  if (tree.status() == 0 && values == nullptr) {
    solution.status = SolveStatus::Infeasible;
    return solution;
  }
  solution.status = tree.status() == 0   ? SolveStatus::Optimal
                    : tree.status() == 1 ? SolveStatus::Stopped
                                         : SolveStatus::Failed;
  if (values == nullptr) return solution;
  solution.objective = sign * tree.getObjValue();
  if (solution.status == SolveStatus::Optimal) solution.bound = solution.objective;
  solution.values.assign(values, values + kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == ColumnKind::Integer) solution.values[i] = std::round(solution.values[i]);
  }
  return solution;
}

Solution LinearProgram::Model::search(const SolveLimits& limits, std::span<const double> start) {
  OsiClpSolverInterface solver{new ClpSimplex(simplex), true};  // owned by the interface
  solver.messageHandler()->setLogLevel(0);
  solver.setHintParam(OsiDoReducePrint, true, OsiHintTry);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == ColumnKind::Integer) solver.setInteger(static_cast<int>(i));
  }
  CbcModel tree{solver};
  tree.messageHandler()->setLogLevel(0);
  tree.setLogLevel(0);
  tree.setMaximumSeconds(limits.seconds);
  tree.setMaximumNodes(
      static_cast<int>(std::min<std::int64_t>(limits.nodes, std::numeric_limits<int>::max())));
  tree.setAllowableFractionGap(limits.gap);
  tree.setAllowableGap(1e-9);
  // -1: a kind of cut that does not help at the root of the tree is switched off.
  CglProbing probing;
  CglGomory gomory;
  CglKnapsackCover cover;
  CglMixedIntegerRounding2 rounding;
  tree.addCutGenerator(&probing, -1, "Probing");
  tree.addCutGenerator(&gomory, -1, "Gomory");
  tree.addCutGenerator(&cover, -1, "Cover");
  tree.addCutGenerator(&rounding, -1, "Rounding");
  CbcRounding nearest{tree};
  CbcHeuristicFPump pump{tree};
  tree.addHeuristic(&nearest);
  tree.addHeuristic(&pump);
  if (start.size() == kinds.size()) {
    // A start that is feasible gives the search a bound from its first node on.
    double value = 0;
    for (std::size_t i = 0; i < start.size(); ++i) value += simplex.objective()[i] * start[i];
    tree.setBestSolution(start.data(), static_cast<int>(start.size()), value, true);
  }
  tree.branchAndBound();
  return answer_of_search(tree);
}

LinearProgram::LinearProgram(Sense sense) : model_(std::make_unique<Model>()) {
  model_->sign = sense == Sense::Maximise ? -1 : 1;
  model_->simplex.setLogLevel(0);
}
LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram&&) noexcept = default;
LinearProgram& LinearProgram::operator=(LinearProgram&&) noexcept = default;

ColumnId LinearProgram::add_column(double cost, const Bounds& bounds, ColumnKind kind) {
  BERTH_CHECK(std::isfinite(cost), "the cost of a column is a finite number");
  BERTH_CHECK(!std::isnan(bounds.low) && !std::isnan(bounds.high), "bounds are numbers");
  model_->pending.cost.push_back(model_->sign * cost);
  model_->pending.column_low.push_back(for_solver(bounds.low));
  model_->pending.column_high.push_back(for_solver(bounds.high));
  model_->kinds.push_back(kind);
  return ColumnId{columns() - 1};
}

RowId LinearProgram::add_row(std::span<const LinearTerm> terms, const Bounds& bounds) {
  BERTH_CHECK(!std::isnan(bounds.low) && !std::isnan(bounds.high), "bounds are numbers");
  Pending& pending = model_->pending;
  for (const LinearTerm& term : terms) {
    BERTH_CHECK(term.column.value >= 0 && term.column.value < columns(), "a row of known columns");
    BERTH_CHECK(std::isfinite(term.coefficient), "a coefficient is a finite number");
    pending.row_column.push_back(term.column.value);
    pending.row_value.push_back(term.coefficient);
  }
  pending.row_start.push_back(static_cast<CoinBigIndex>(pending.row_column.size()));
  pending.row_low.push_back(for_solver(bounds.low));
  pending.row_high.push_back(for_solver(bounds.high));
  return RowId{model_->rows++};
}

void LinearProgram::set_cost(ColumnId column, double cost) {
  BERTH_CHECK(std::isfinite(cost), "the cost of a column is a finite number");
  model_->flush();
  model_->simplex.setObjectiveCoefficient(column.value, model_->sign * cost);
  model_->only_bounds_changed = false;
}

void LinearProgram::set_bounds(ColumnId column, const Bounds& bounds) {
  model_->flush();
  model_->simplex.setColumnBounds(column.value, for_solver(bounds.low), for_solver(bounds.high));
}

void LinearProgram::set_bounds(RowId row, const Bounds& bounds) {
  model_->flush();
  model_->simplex.setRowBounds(row.value, for_solver(bounds.low), for_solver(bounds.high));
}

void LinearProgram::set_coefficient(RowId row, ColumnId column, double coefficient) {
  BERTH_CHECK(std::isfinite(coefficient), "a coefficient is a finite number");
  model_->flush();
  model_->simplex.modifyCoefficient(row.value, column.value, coefficient, true);
  model_->only_bounds_changed = false;
}

std::int32_t LinearProgram::columns() const noexcept {
  return static_cast<std::int32_t>(model_->kinds.size());
}
std::int32_t LinearProgram::rows() const noexcept { return model_->rows; }

Solution LinearProgram::solve(const SolveLimits& limits) { return model_->relaxed(limits); }

// The relaxation first: if it is infeasible or already integral there is nothing to search.
Solution LinearProgram::solve_integer(const SolveLimits& limits, std::span<const double> start) {
  Solution relaxed = model_->relaxed(limits);
  if (relaxed.status != SolveStatus::Optimal) return relaxed;
  if (std::ranges::find(model_->kinds, ColumnKind::Integer) == model_->kinds.end()) return relaxed;
  Solution found = model_->search(limits, start);
  // The search may stop before it has a bound of its own.
  const bool bound_is_useless = !std::isfinite(found.bound) || std::abs(found.bound) > 1e40;
  if (bound_is_useless) found.bound = relaxed.bound;
  return found;
}

}  // namespace berth
