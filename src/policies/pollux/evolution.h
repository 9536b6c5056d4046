// Pollux's round where the genetic algorithm decides: which GPUs each job gets on each node of a
// pool. The last generation is kept, so that the next round begins where this one ended.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policies/pollux/genetic.h"
#include "policies/pollux/pool_round.h"

namespace berth::pollux {

class Evolution {
 public:
  explicit Evolution(std::vector<NodeId> nodes) : nodes_(std::move(nodes)) {}

  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }
  /// True if anybody is not where it was.
  bool optimise(const PoolRound& round, const GeneticOptions& options, Interference interference);

 private:
  [[nodiscard]] GeneticProblem problem(const PoolRound& round, Interference interference) const;
  void carry_population(std::span<const JobId> jobs);
  [[nodiscard]] bool apply(const PoolRound& round, std::span<const std::uint8_t> rows,
                           std::span<const std::uint8_t> before);
  [[nodiscard]] bool start_on_row(Plan& plan, const goodput::Home& home, PoolId pool,
                                  std::span<const std::uint8_t> row);

  std::vector<NodeId> nodes_;  // of the pool
  std::vector<JobId> bred_;    // whose rows the population has, by id
  std::vector<Allocations> population_;
  std::vector<Slice> slices_;  // scratch
};

}  // namespace berth::pollux
