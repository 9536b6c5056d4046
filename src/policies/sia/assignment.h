// Sia's integer program: every job takes one of its configurations or none, at the least total
// cost, within the GPUs of each type. A multiple-choice knapsack with a few capacities.
//
//   solve()          one type: the exact table if it is small; otherwise Lagrangian prices,
//                    repair, filling and exchanges of two, then for few jobs the exact search
//   solve_exactly()  branch and bound with the prices' bound
//
// Equal jobs are one row with a count, so that a pass over a large cluster costs O(rows * options)
// per iteration. Deterministic; bounded by iterations and search nodes, not by time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace berth::sia {

struct Option {
  std::uint32_t type = 0;
  std::int32_t gpus = 1;
  double cost = 0;
};

struct Row {
  std::vector<Option> options;
  double none = 0;  // cost of getting nothing
  std::int32_t count = 1;
};

struct Program {
  std::vector<Row> rows;
  std::vector<std::int64_t> capacity;  // GPUs by type
};

/// By row: how many of its jobs take each option; the others take none.
struct Assignment {
  std::vector<std::vector<std::int32_t>> taken;
  double cost = 0;
};

struct SolveLimits {
  std::int32_t iterations = 100;       // of the prices
  std::int32_t exact_jobs = 30;        // up to which the search is tried
  std::int64_t search_nodes = 20'000;  // it may visit
  std::int64_t table_cells = 100'000;  // of the exact table for one type
  std::int64_t exchange_moves = 600;   // moves of one job up to which pairs of them are tried
};

[[nodiscard]] Assignment solve(const Program& program, const SolveLimits& limits = {});
/// Nothing if it needs more than `nodes` search nodes.
[[nodiscard]] std::optional<Assignment> solve_exactly(const Program& program, std::int64_t nodes);
/// One type only: the table over GPUs.
[[nodiscard]] Assignment solve_one_type(const Program& program);
/// Lagrangian prices, repair, filling and exchanges alone.
[[nodiscard]] Assignment solve_by_prices(const Program& program, const SolveLimits& limits = {});

[[nodiscard]] double cost_of(const Program& program, const Assignment& assignment);
[[nodiscard]] bool is_within_capacity(const Program& program, const Assignment& assignment);

}  // namespace berth::sia
