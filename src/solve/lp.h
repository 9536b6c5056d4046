// Linear and mixed-integer programs: columns with costs and bounds, rows with bounds. A program is
// kept between rounds: after a change of costs, bounds, coefficients or new rows the next solve()
// starts from the last basis. solve_integer() is branch and cut with limits; it answers with the
// best solution found and how far the bound is away.
//
// Same program and same history of changes, same answer, unless a limit of seconds was hit: for
// reproducible runs let the node limit be the one that bites. Not thread-safe; programs are
// independent of each other. The solver prints nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace berth {

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

enum class Sense : std::uint8_t { Minimise, Maximise };
enum class ColumnKind : std::uint8_t { Continuous, Integer };

struct ColumnId {
  std::int32_t value = 0;
  friend constexpr auto operator<=>(ColumnId, ColumnId) = default;
};
struct RowId {
  std::int32_t value = 0;
  friend constexpr auto operator<=>(RowId, RowId) = default;
};

struct LinearTerm {
  ColumnId column;
  double coefficient = 0;
};

struct Bounds {
  double low = -kNoBound;
  double high = kNoBound;
  [[nodiscard]] static constexpr Bounds at_most(double high) noexcept { return {-kNoBound, high}; }
  [[nodiscard]] static constexpr Bounds at_least(double low) noexcept { return {low, kNoBound}; }
  [[nodiscard]] static constexpr Bounds exactly(double value) noexcept { return {value, value}; }
};

struct SolveLimits {
  double seconds = 60;          // of processor time
  std::int64_t nodes = 100000;  // of the search tree (integer programs)
  double gap = 1e-9;            // relative: good enough
};

enum class SolveStatus : std::uint8_t {
  Optimal,     // proven, within the gap
  Stopped,     // at a limit; has_values() tells whether something was found
  Infeasible,  // no solution exists
  Unbounded,   // no best solution exists
  Failed,      // numerical trouble
};

struct Solution {
  SolveStatus status = SolveStatus::Failed;
  double objective = 0;
  double bound = 0;            // no solution is better than this
  std::vector<double> values;  // by column; empty if there is no solution, or no column
  std::vector<double> prices;  // by row, of the linear program: change of objective per unit

  /// A solution was found: also that of a program without columns, which has no values to show.
  [[nodiscard]] bool has_values() const noexcept {
    return status == SolveStatus::Optimal || !values.empty();
  }
  [[nodiscard]] double operator[](ColumnId column) const noexcept {
    return values[static_cast<std::size_t>(column.value)];
  }
  /// |bound - objective| relative to the objective; 0 when proven optimal.
  [[nodiscard]] double gap() const noexcept;
};

class LinearProgram {
 public:
  explicit LinearProgram(Sense sense);
  ~LinearProgram();
  LinearProgram(LinearProgram&&) noexcept;
  LinearProgram& operator=(LinearProgram&&) noexcept;

  /// Finite cost; a coefficient or bound that is not a number is a broken invariant.
  ColumnId add_column(double cost, const Bounds& bounds = {0, kNoBound},
                      ColumnKind kind = ColumnKind::Continuous);
  /// Each column at most once.
  RowId add_row(std::span<const LinearTerm> terms, const Bounds& bounds);

  void set_cost(ColumnId column, double cost);
  void set_bounds(ColumnId column, const Bounds& bounds);
  void set_bounds(RowId row, const Bounds& bounds);
  void set_coefficient(RowId row, ColumnId column, double coefficient);

  [[nodiscard]] std::int32_t columns() const noexcept;
  [[nodiscard]] std::int32_t rows() const noexcept;

  /// The linear program: integer columns may take fractions.
  [[nodiscard]] Solution solve(const SolveLimits& limits = {});
  /// `start`, if given and feasible, is the first solution known: the answer is no worse.
  [[nodiscard]] Solution solve_integer(const SolveLimits& limits = {},
                                       std::span<const double> start = {});

 private:
  struct Model;  // hides the solver's headers
  std::unique_ptr<Model> model_;
};

}  // namespace berth
