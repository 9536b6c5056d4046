// Pollux's round where the genetic algorithm decides: which GPUs each job gets on each node.
#include <algorithm>
#include <bit>

#include "policies/pollux/pollux.h"

namespace berth::pollux {

GeneticJob Pollux::genetic_job(const View& view, const Plan& plan, JobId job, PoolId pool) {
  GeneticJob gene;
  gene.least = book_.least(job);
  gene.most = std::max(book_.most(job), gene.least);
  gene.pinned = plan.holds(job) && book_.is_pinned(view, job);
  gene.restart = book_.restart_factor(view, job);
  const double fair = fair_goodput(view, job, pool, fair_share(view, pool));
  const GoodputTable& table = book_.table(view, job, pool);
  const std::int32_t largest = view.cluster.largest_node(pool);
  const bool stays_together = view.shape(job).locality == Locality::Consolidated;
  const std::int32_t sizes = std::max(gene.most, plan.gpus_of(job));
  for (std::int32_t gpus = 0; gpus <= sizes; ++gpus) {
    const bool fits_one = gpus <= largest;
    gene.one_node.push_back(fits_one ? table.goodput(gpus, false) / fair : 0);
    gene.spread.push_back(fits_one && stays_together ? 0 : table.goodput(gpus, true) / fair);
  }
  return gene;
}

GeneticProblem Pollux::problem(const View& view, const Plan& plan, PoolId pool) {
  const PoolState& state = pools_[pool.value];
  GeneticProblem problem;
  problem.p = options_.p;
  problem.interference = options_.interference;
  std::vector<std::uint32_t> column(view.cluster.cluster().nodes.size());
  for (std::uint32_t n = 0; n < state.nodes.size(); ++n) {
    const NodeId node = state.nodes[n];
    column[node.value] = n;
    problem.capacity.push_back(
        view.cluster.is_up(node) ? view.cluster.cluster().nodes[node.value].gpus : 0);
  }
  for (const JobId job : state.jobs) {
    const std::size_t row = problem.current.size();
    problem.current.resize(row + problem.nodes());
    for (const Slice& slice : plan.slices(job))
      problem.current[row + column[slice.node.value]] = static_cast<std::uint8_t>(slice.gpus);
    problem.jobs.push_back(genetic_job(view, plan, job, pool));
  }
  return problem;
}

/// The rows of jobs that are still here; newcomers have nothing.
void Pollux::carry_population(PoolState& state, std::size_t cells) {
  const std::size_t nodes = state.nodes.size();
  for (Allocations& member : state.population) {
    Allocations next(cells, 0);
    std::size_t old = 0;
    for (std::size_t j = 0; j < state.jobs.size(); ++j) {
      while (old < state.population_jobs.size() && state.population_jobs[old] < state.jobs[j])
        ++old;
      if (old == state.population_jobs.size() || state.population_jobs[old] != state.jobs[j])
        continue;
      std::copy_n(member.begin() + static_cast<std::ptrdiff_t>(old * nodes), nodes,
                  next.begin() + static_cast<std::ptrdiff_t>(j * nodes));
    }
    member.swap(next);
  }
  state.population_jobs = state.jobs;
}

bool Pollux::optimise_by_genes(const View& view, Plan& plan, PoolId pool, Rng& rng) {
  PoolState& state = pools_[pool.value];
  const GeneticProblem now = problem(view, plan, pool);
  carry_population(state, now.cells());
  Genetic genetic(now, rng);
  const GeneticResult result = genetic.run(options_.genetic, state.population);
  return apply_rows(view, plan, pool, result.best, now.current);
}

/// Everybody whose row changes leaves first, so that all places are free when they are taken.
bool Pollux::apply_rows(const View& view, Plan& plan, PoolId pool,
                        std::span<const std::uint8_t> rows, std::span<const std::uint8_t> before) {
  const PoolState& state = pools_[pool.value];
  const std::size_t nodes = state.nodes.size();
  std::vector<Home> homes;
  std::vector<std::size_t> changed;
  for (std::size_t j = 0; j < state.jobs.size(); ++j) {
    const auto row = rows.subspan(j * nodes, nodes);
    if (std::ranges::equal(row, before.subspan(j * nodes, nodes))) continue;
    changed.push_back(j);
    homes.push_back(leave(plan, state.jobs[j]));
  }
  bool moved = false;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const auto row = rows.subspan(changed[i] * nodes, nodes);
    const Home& home = homes[i];
    std::int32_t gpus = 0;
    for (const std::uint8_t on_node : row) gpus += on_node;
    if (gpus > 0 && !start_on_row(plan, home.job, pool, row, home.slices))
      resizer_.bring_back(plan, home, pool, gpus);
    moved |= resizer_.settle(view, plan, home);
  }
  return moved;
}

/// On each node its own devices first, then the lowest free ones.
bool Pollux::start_on_row(Plan& plan, JobId job, PoolId pool, std::span<const std::uint8_t> row,
                          std::span<const Slice> before) {
  slices_.clear();
  const auto& nodes = pools_[pool.value].nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (row[n] == 0) continue;
    const std::uint64_t free = plan.cluster().free_mask(nodes[n]);
    if (std::popcount(free) < row[n]) return false;
    std::uint64_t own = 0;
    for (const Slice& slice : before) own |= slice.node == nodes[n] ? slice.devices : 0;
    std::uint64_t taken = 0;
    for (std::uint64_t from : {free & own, free & ~own}) {
      for (; from != 0 && std::popcount(taken) < row[n]; from &= from - 1)
        taken |= from & (~from + 1);
    }
    slices_.push_back({.node = nodes[n], .gpus = row[n], .devices = taken});
  }
  return plan.try_start_on(job, pool, slices_, Reason::Growth);
}

}  // namespace berth::pollux
