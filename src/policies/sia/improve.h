// Steps from one assignment to a better or a feasible one: moves of some jobs of a row from one
// option to another. Repair drops what overuses a type, filling takes what is left, exchanges try
// two moves at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/sia/assignment.h"

namespace berth::sia {

class Improver {
 public:
  explicit Improver(const Program& program);

  /// Every job of a row takes the same option; options.size() = none.
  void set(std::span<const std::size_t> choices);
  void set(const Assignment& assignment);
  void repair();
  void fill();
  void exchange();
  [[nodiscard]] Assignment result() const;
  [[nodiscard]] double cost() const noexcept { return cost_; }
  /// Moves of one job that are possible now.
  [[nodiscard]] std::int64_t moves() const;

 private:
  struct Move {
    std::size_t row = 0;
    std::size_t from = 0, to = 0;  // options, the last one is none
  };
  // Every step looks at all moves, so these are all of its time.
  [[nodiscard]] double cost_at(std::size_t row, std::size_t option) const {
    return options_[row][option].cost;
  }
  [[nodiscard]] std::int32_t gpus_at(std::size_t row, std::size_t option) const {
    return options_[row][option].gpus;
  }
  [[nodiscard]] std::uint32_t type_at(std::size_t row, std::size_t option) const {
    return options_[row][option].type;
  }
  [[nodiscard]] double change(const Move& move) const {
    return cost_at(move.row, move.to) - cost_at(move.row, move.from);
  }
  template <class See>
  void for_each_move(See see) const;
  /// Free GPUs of the type after the move.
  [[nodiscard]] std::int64_t free_after(const Move& move, std::uint32_t type) const;
  [[nodiscard]] bool fits(const Move& move) const;
  void make(const Move& move, std::int32_t jobs);
  [[nodiscard]] bool relieve(std::uint32_t type);
  [[nodiscard]] bool take_best();
  [[nodiscard]] bool exchange_once();

  const Program& program_;
  std::vector<std::vector<Option>> options_;      // by row, with none as the last one
  std::vector<std::vector<std::int32_t>> taken_;  // by row and option, the last one is none
  std::vector<std::int64_t> free_;                // by type; negative: overused
  double cost_ = 0;
};

}  // namespace berth::sia
