#include "policies/pollux/evolution.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/device_mask.h"

namespace berth::pollux {

namespace {

GeneticJob genetic_job(const PoolRound& round, JobId job) {
  const View& view = round.pass.view;
  GeneticJob gene;
  gene.least = round.models.least(job);
  gene.most = std::max(round.models.most(job), gene.least);
  gene.pinned = round.is_pinned(job);
  gene.restart = round.models.restart_factor(view, job);
  const double fair = round.fair_goodput(job);
  const goodput::Table& table = round.table(job);
  const bool stays_together = view.shape(job).locality == Locality::Consolidated;
  const std::int32_t sizes = std::max(gene.most, round.pass.plan.gpus_of(job));
  for (std::int32_t gpus = 0; gpus <= sizes; ++gpus) {
    const bool fits_one = gpus <= round.largest_node();
    gene.one_node.push_back(fits_one ? table.goodput(gpus, false) / fair : 0);
    gene.spread.push_back(fits_one && stays_together ? 0 : table.goodput(gpus, true) / fair);
  }
  return gene;
}

}  // namespace

GeneticProblem Evolution::problem(const PoolRound& round, Interference interference) const {
  const ClusterState& cluster = round.pass.view.cluster;
  GeneticProblem problem;
  problem.p = round.p;
  problem.interference = interference;
  Column<NodeId, std::uint32_t> column(cluster.cluster().nodes.size());
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    column[nodes_[n]] = n;
    const bool is_up = cluster.is_up(nodes_[n]);
    problem.capacity.push_back(is_up ? cluster.cluster().nodes[nodes_[n].value].gpus : 0);
  }
  for (const JobId job : round.jobs) {
    const std::size_t row = problem.current.size();
    problem.current.resize(row + problem.nodes());
    for (const Slice& slice : round.pass.plan.slices(job))
      problem.current[row + column[slice.node]] = static_cast<std::uint8_t>(slice.gpus);
    problem.jobs.push_back(genetic_job(round, job));
  }
  return problem;
}

/// The rows of jobs that are still here; newcomers have nothing.
void Evolution::carry_population(std::span<const JobId> jobs) {
  const std::size_t nodes = nodes_.size();
  for (Allocations& member : population_) {
    Allocations next(jobs.size() * nodes, 0);
    std::size_t old = 0;  // both lists are in the order of ids
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      while (old < bred_.size() && bred_[old] < jobs[j]) ++old;
      if (old == bred_.size() || bred_[old] != jobs[j]) continue;
      std::copy_n(member.begin() + static_cast<std::ptrdiff_t>(old * nodes), nodes,
                  next.begin() + static_cast<std::ptrdiff_t>(j * nodes));
    }
    member.swap(next);
  }
  bred_.assign(jobs.begin(), jobs.end());
}

bool Evolution::optimise(const PoolRound& round, const GeneticOptions& options,
                         Interference interference) {
  const GeneticProblem now = problem(round, interference);
  carry_population(round.jobs);
  Genetic genetic(now, round.pass.rng);
  const GeneticResult result = genetic.run(options, population_);
  return apply(round, result.best, now.current);
}

/// Everybody whose row changes leaves first, so that all places are free when they are taken.
bool Evolution::apply(const PoolRound& round, std::span<const std::uint8_t> rows,
                      std::span<const std::uint8_t> before) {
  Plan& plan = round.pass.plan;
  const std::size_t nodes = nodes_.size();
  std::vector<std::pair<goodput::Home, std::span<const std::uint8_t>>> moves;
  for (std::size_t j = 0; j < round.jobs.size(); ++j) {
    const auto row = rows.subspan(j * nodes, nodes);
    if (std::ranges::equal(row, before.subspan(j * nodes, nodes))) continue;
    moves.emplace_back(goodput::leave(plan, round.jobs[j]), row);
  }
  bool moved = false;
  for (const auto& [home, row] : moves) {
    const std::int32_t gpus = std::accumulate(row.begin(), row.end(), 0);
    if (gpus > 0 && !start_on_row(plan, home, round.pool, row))
      round.resizer.bring_back(plan, home, round.pool, gpus);
    moved |= round.resizer.settle(round.pass, home);
  }
  return moved;
}

/// On each node its own devices first, then the lowest free ones.
bool Evolution::start_on_row(Plan& plan, const goodput::Home& home, PoolId pool,
                             std::span<const std::uint8_t> row) {
  slices_.clear();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (row[n] == 0) continue;
    const std::uint64_t free = plan.cluster().free_mask(nodes_[n]);
    if (std::popcount(free) < row[n]) return false;
    std::uint64_t own = 0;
    for (const Slice& slice : home.slices) own |= slice.node == nodes_[n] ? slice.devices : 0;
    std::uint64_t taken = DeviceMask{free & own}.lowest(row[n]);
    taken |= DeviceMask{free & ~own}.lowest(row[n] - std::popcount(taken));
    slices_.push_back({.node = nodes_[n], .gpus = row[n], .devices = taken});
  }
  return plan.try_start_on(home.job, pool, slices_, Reason::Growth);
}

}  // namespace berth::pollux
