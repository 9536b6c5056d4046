#include "policies/synergy/optimum.h"

#include <fmt/format.h>

namespace berth::synergy {
namespace {

struct Option {
  std::size_t job = 0;
  Share share;
  ColumnId column;
};

double memory_of(const Axes& axes, const Share& share) noexcept {
  return static_cast<double>(axes.memory_mib[static_cast<std::size_t>(share.level)]);
}

/// Worth its resources: faster than with a core less, and than with a level less.
bool is_worth_it(const Sensitivity& w, const Share& share) noexcept {
  const double speed = w.at(share);
  if (share.cores > 1 && w.at({share.cores - 1, share.level}) >= speed) return false;
  return share.level == 0 || w.at({share.cores, share.level - 1}) < speed;
}

/// The choices of one job: those that keep its proportional throughput and waste nothing, and the
/// proportional share itself, which always fits.
std::vector<Share> choices_of(const Sensitivity& w) {
  std::vector<Share> choices;
  for (std::int32_t cores = 1; cores <= w.max_cores(); ++cores) {
    for (std::int32_t level = 0; level < w.levels(); ++level) {
      const Share share{cores, level};
      if (share == w.fair() || (w.at(share) >= 1 && is_worth_it(w, share)))
        choices.push_back(share);
    }
  }
  return choices;
}

struct Totals {
  double gpus = 0, cores = 0, memory = 0;
};

Totals totals_of(std::span<const Server> servers) noexcept {
  Totals sum;
  for (const Server& server : servers) {
    sum.gpus += server.gpus;
    sum.cores += server.cores;
    sum.memory += static_cast<double>(server.memory_mib);
  }
  return sum;
}

}  // namespace

Result<Optimum> optimum_of(const Axes& axes, std::span<const Server> servers,
                           std::span<const Job> jobs, const SolveLimits& limits) {
  const Totals totals = totals_of(servers);
  double gpus = 0;
  for (const Job& job : jobs) gpus += job.gpus;
  if (gpus > totals.gpus)
    return fail(fmt::format("the jobs ask for {} GPUs, the servers have {}", gpus, totals.gpus));

  LinearProgram program{Sense::Maximise};
  std::vector<Option> options;
  std::vector<double> start;
  std::vector<LinearTerm> cores, memory, one;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const Sensitivity& w = *jobs[j].sensitivity;
    one.clear();
    for (const Share& share : choices_of(w)) {
      const ColumnId y =
          program.add_column(jobs[j].gpus * w.at(share), {0, 1}, ColumnKind::Integer);
      options.push_back({j, share, y});
      start.push_back(share == w.fair() ? 1 : 0);
      cores.push_back({y, static_cast<double>(jobs[j].gpus) * share.cores});
      memory.push_back({y, static_cast<double>(jobs[j].gpus) * memory_of(axes, share)});
      one.push_back({y, 1});
    }
    program.add_row(one, Bounds::exactly(1));
  }
  program.add_row(cores, Bounds::at_most(totals.cores));
  program.add_row(memory, Bounds::at_most(totals.memory));

  const Solution solution = program.solve_integer(limits, start);
  if (!solution.has_values()) return fail("no choice of cores and memory was found for the jobs");
  Optimum optimum{.status = solution.status,
                  .shares = std::vector<Share>(jobs.size()),
                  .value = solution.objective,
                  .bound = solution.bound};
  for (const Option& option : options) {
    if (solution[option.column] > 0.5) optimum.shares[option.job] = option.share;
  }
  return optimum;
}

}  // namespace berth::synergy
