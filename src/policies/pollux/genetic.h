// Pollux's cluster optimisation: a genetic algorithm over matrices "GPUs of job j on node n". A
// child is crossed, mutated and repaired, so that every member of the population is feasible:
// capacity, largest and least sizes, pinned rows, and at most one distributed job per node.
//
// A generation costs O(population * jobs * nodes) bytes touched. It ends early when `patience`
// generations in a row found nothing better. Deterministic in (problem, population, rng).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

namespace berth::pollux {

/// What a job makes of an allocation, and within which bounds.
struct GeneticJob {
  std::vector<double> one_node;  // utility by GPUs, from 0 to `most`; 0 = not possible
  std::vector<double> spread;    // the same over several nodes
  std::int32_t least = 1;
  std::int32_t most = 1;
  bool pinned = false;  // keeps its row
  double restart = 1;   // factor of the utility if the row changes
};

enum class Interference : std::uint8_t { Allow, Avoid };

struct GeneticProblem {
  std::vector<std::int32_t> capacity;  // by node
  std::vector<GeneticJob> jobs;
  std::vector<std::uint8_t> current;  // by job and node
  double p = -1;
  Interference interference = Interference::Avoid;

  [[nodiscard]] std::size_t nodes() const noexcept { return capacity.size(); }
  [[nodiscard]] std::size_t cells() const noexcept { return jobs.size() * capacity.size(); }
};

struct GeneticOptions {
  std::size_t population = 100;
  std::int32_t generations = 100;
  std::int32_t patience = 100;
  std::size_t most_cells = SIZE_MAX;  // touched in all: fewer generations for larger problems
};

using Allocations = std::vector<std::uint8_t>;  // by job and node

struct GeneticResult {
  Allocations best;  // the current one if nothing is better by 1e-9
  double fitness = 0;
  std::int32_t generations = 0;
};

class Genetic {
 public:
  Genetic(const GeneticProblem& problem, Rng& rng);

  /// `population`: members to begin with (any may be infeasible: they are repaired), on return the
  /// last generation, best first.
  [[nodiscard]] GeneticResult run(const GeneticOptions& options,
                                  std::vector<Allocations>& population);

  [[nodiscard]] double fitness(std::span<const std::uint8_t> allocations) const;
  void repair(std::span<std::uint8_t> allocations);

 private:
  [[nodiscard]] std::span<std::uint8_t> row(std::span<std::uint8_t> all, std::size_t job) const {
    return all.subspan(job * nodes_, nodes_);
  }
  [[nodiscard]] double score(std::span<const std::uint8_t> allocations) const;
  [[nodiscard]] bool is_better(double a, double b) const noexcept {
    return problem_.p < 0 ? a < b : a > b;
  }
  void populate(std::size_t size, std::vector<Allocations>& members);
  void breed(std::vector<Allocations>& members);
  void survive(std::size_t size, std::vector<Allocations>& members);
  [[nodiscard]] std::size_t tournament(std::size_t members);
  void cross(const Allocations& first, const Allocations& second, Allocations& child);
  void mutate(std::span<std::uint8_t> allocations);
  void draw_order();
  void restore_pinned(std::span<std::uint8_t> all);
  void separate_distributed(std::span<std::uint8_t> all);
  void cap_jobs(std::span<std::uint8_t> all);
  void cap_nodes(std::span<std::uint8_t> all);
  void drop_small(std::span<std::uint8_t> all);

  const GeneticProblem& problem_;
  Rng& rng_;
  std::size_t nodes_;
  std::vector<std::vector<double>> values_;  // by job: u^p by GPUs, 4 tables (spread, moved)
  std::vector<double> scores_;               // of the members
  std::vector<Allocations> spare_;           // room of those that did not survive
  std::vector<std::uint32_t> order_;         // scratch: jobs, pinned first; or members by rank
  std::vector<std::uint32_t> distributed_;   // scratch
  std::vector<std::int32_t> node_count_;     // scratch, by job
  std::vector<std::uint32_t> used_nodes_;    // scratch
  std::vector<std::int32_t> load_;           // scratch, by node
};

}  // namespace berth::pollux
