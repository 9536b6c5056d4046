// The linear program behind every max-min policy: raise a common level z as far as it goes.
//
//   max z   such that   value_c * eff_c(X) - weight_c * z >= base_c     for each class that rises
//                       value_c * eff_c(X)               >= base_c     for each that is frozen
//                       sum of a job's fractions <= 1, devices of each type not exceeded
//
// All-zero is feasible at the start. Values, weights and bases may change between solves; the next
// one starts from the last basis. Rows are scaled so that coefficients stay near 1.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "policies/gavel/fluid.h"
#include "solve/lp.h"

namespace berth::gavel {

/// The columns X with the rows that make them a legal split of time and devices; shared by all
/// programs. `scale` is the column that stands for 1 in a Charnes-Cooper form, if any.
class FluidColumns {
 public:
  FluidColumns(const Fluid& fluid, LinearProgram& program,
               std::optional<ColumnId> scale = std::nullopt);

  /// Work per second of a class over `unit`, as terms of a row.
  [[nodiscard]] std::vector<LinearTerm> rate_terms(std::size_t at, double unit) const;
  /// The column of a turn (a class, if it is one) on a type; nothing if it cannot be there.
  [[nodiscard]] std::optional<ColumnId> column(std::size_t at, std::size_t type) const noexcept {
    return columns_[at * fluid_->types() + type];
  }
  /// `scale`: the value of that column.
  [[nodiscard]] Shares shares(const Solution& solution, double scale = 1) const;

 private:
  void add_columns(LinearProgram& program, const Bounds& bounds);
  void add_time_rows(LinearProgram& program, std::optional<ColumnId> scale) const;
  void add_device_rows(LinearProgram& program, std::optional<ColumnId> scale) const;

  const Fluid* fluid_;
  std::vector<std::optional<ColumnId>> columns_;  // by turn, type
};

struct Level {
  double z = 0;
  Shares shares;
  std::vector<bool> is_bound;  // by class: its own level cannot rise without lowering another's
};

class LevelProgram {
 public:
  /// `value` must be above zero for classes that can run; the others are left out. `fluid` must
  /// outlive this.
  LevelProgram(const Fluid& fluid, std::span<const double> value);

  void set_value(std::size_t at, double value);
  void set_weight(std::size_t at, double weight);  // 0 freezes it at its base
  void set_base(std::size_t at, double base);
  /// Nothing if the solver fails.
  [[nodiscard]] std::optional<Level> solve();
  /// Instead of one level for all: the largest sum of levels above the bases.
  [[nodiscard]] std::optional<Shares> solve_sum();

 private:
  struct Row {
    RowId id;
    bool exists = false;
    double value = 1;
    double weight = 1;
    double base = 0;
    double best_rate = 1;
  };
  [[nodiscard]] double rise_of(const Row& row) const noexcept {
    return row.weight * unit_ / (row.value * row.best_rate);
  }

  const Fluid* fluid_;
  LinearProgram program_{Sense::Maximise};
  ColumnId z_;
  FluidColumns columns_;
  std::vector<Row> rows_;  // by class
  double unit_ = 1;        // levels are counted in these inside the program
};

}  // namespace berth::gavel
