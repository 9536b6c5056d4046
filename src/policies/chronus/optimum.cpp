#include "policies/chronus/optimum.h"

#include <algorithm>

namespace berth::chronus {

namespace {

struct Columns {
  ColumnId admitted;
  std::vector<ColumnId> terms;
};

/// Small enough that no delay of all leases together outweighs the least reward.
double price_of_delay(std::span<const SelectionJob> jobs) {
  double least = jobs.front().reward;
  double most_delay = 1;
  for (const SelectionJob& job : jobs) {
    least = std::min(least, job.reward);
    most_delay += static_cast<double>(job.leases * job.end);
  }
  return least / (2 * most_delay);
}

std::vector<Columns> add_columns(LinearProgram& program, std::span<const SelectionJob> jobs,
                                 std::size_t terms) {
  // With nothing to choose, lateness alone counts, in units that the solver tells apart.
  const bool all_promised = std::ranges::all_of(jobs, &SelectionJob::is_promised);
  const double delay = all_promised ? 1 : price_of_delay(jobs);
  std::vector<Columns> columns;
  for (const SelectionJob& job : jobs) {
    const double least = job.is_promised ? 1 : 0;
    Columns& own = columns.emplace_back();
    own.admitted =
        program.add_column(all_promised ? 0 : job.reward, {least, 1}, ColumnKind::Integer);
    const auto end = std::min(static_cast<std::size_t>(job.end), terms);
    for (std::size_t t = 0; t < end; ++t)
      own.terms.push_back(
          program.add_column(-delay * static_cast<double>(t), {0, 1}, ColumnKind::Integer));
  }
  return columns;
}

void add_rows(LinearProgram& program, std::span<const SelectionJob> jobs,
              std::span<const std::int64_t> capacity, const std::vector<Columns>& columns) {
  std::vector<LinearTerm> row;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    row.assign({{columns[j].admitted, -static_cast<double>(jobs[j].leases)}});
    for (const ColumnId column : columns[j].terms) row.push_back({column, 1});
    program.add_row(row, Bounds::exactly(0));
  }
  for (std::size_t t = 0; t < capacity.size(); ++t) {
    row.clear();
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      if (t < columns[j].terms.size())
        row.push_back({columns[j].terms[t], static_cast<double>(jobs[j].gpus)});
    }
    if (!row.empty()) program.add_row(row, Bounds::at_most(static_cast<double>(capacity[t])));
  }
}

}  // namespace

std::optional<Selection> best_selection(std::span<const SelectionJob> jobs,
                                        std::span<const std::int64_t> capacity,
                                        const SolveLimits& limits) {
  LinearProgram program{Sense::Maximise};
  const std::vector<Columns> columns = add_columns(program, jobs, capacity.size());
  add_rows(program, jobs, capacity, columns);
  const Solution solution = program.solve_integer(limits);
  if (!solution.has_values()) return std::nullopt;
  Selection selection;
  selection.is_proven = solution.status == SolveStatus::Optimal;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    auto& leases = selection.leases.emplace_back();
    for (std::size_t t = 0; t < columns[j].terms.size(); ++t) {
      if (solution[columns[j].terms[t]] > 0.5) leases.push_back(static_cast<std::int64_t>(t));
    }
    if (solution[columns[j].admitted] > 0.5) selection.reward += jobs[j].reward;
  }
  return selection;
}

}  // namespace berth::chronus
