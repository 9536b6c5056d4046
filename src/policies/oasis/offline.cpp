#include "policies/oasis/offline.h"

#include "solve/lp.h"

namespace berth::oasis {

namespace {

using Usage = std::vector<std::vector<LinearTerm>>;  // by slot: the workers of all jobs

/// One finish slot at most, workers up to then only, and enough of them for the work.
void add_job(LinearProgram& program, const OfflineJob& job, std::int64_t slots, Usage& used) {
  std::vector<ColumnId> finish;
  std::vector<LinearTerm> once;
  std::vector<LinearTerm> work;
  for (std::int64_t t = job.arrival; t < slots; ++t) {
    const double worth = job.worth[static_cast<std::size_t>(t)];
    finish.push_back(program.add_column(worth, {0, 1}, ColumnKind::Integer));
    once.push_back({finish.back(), 1});
    work.push_back({finish.back(), -static_cast<double>(job.work)});
  }
  program.add_row(once, Bounds::at_most(1));
  const auto most = static_cast<double>(job.workers);
  for (std::int64_t t = job.arrival; t < slots; ++t) {
    const ColumnId workers = program.add_column(0, {0, most}, ColumnKind::Integer);
    work.push_back({workers, 1});
    used[static_cast<std::size_t>(t)].push_back({workers, 1});
    std::vector<LinearTerm> before_finish{{workers, 1}};
    for (std::int64_t f = t; f < slots; ++f)
      before_finish.push_back({finish[static_cast<std::size_t>(f - job.arrival)], -most});
    program.add_row(before_finish, Bounds::at_most(0));
  }
  program.add_row(work, Bounds::at_least(0));
}

}  // namespace

Result<double> offline_optimum(std::int64_t gpus, std::int64_t slots,
                               const std::vector<OfflineJob>& jobs) {
  LinearProgram program{Sense::Maximise};
  Usage used(static_cast<std::size_t>(slots));
  for (const OfflineJob& job : jobs) add_job(program, job, slots, used);
  for (const auto& slot : used) {
    if (!slot.empty()) program.add_row(slot, Bounds::at_most(static_cast<double>(gpus)));
  }
  const Solution solution = program.solve_integer({.seconds = 60, .nodes = 100'000, .gap = 1e-6});
  if (solution.status != SolveStatus::Optimal) return fail("the offline optimum was not found");
  return solution.objective;
}

}  // namespace berth::oasis
