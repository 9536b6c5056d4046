// The objectives of Gavel and the fractions each of them gives: from classes of jobs to shares.
// Knows programs, not engines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/gavel/census.h"
#include "policies/gavel/fluid.h"

namespace berth::gavel {

enum class Objective : std::uint8_t {
  Las,           // equal rates relative to an equal part of the cluster, by weight
  Ftf,           // equal finish times relative to a part of the cluster to oneself
  Makespan,      // all jobs end together, as early as possible
  Cost,          // most work per dollar
  Slo,           // the same, after the rates that deadlines need
  Hierarchical,  // equal parts for users or groups, then for their jobs
  Fifo,          // earlier jobs weigh more
  Sjf,           // shorter jobs weigh more
  Throughput,    // most work in sum
};

/// An objective that gives jobs of a class equal fractions; the others serve them in order.
[[nodiscard]] constexpr bool splits_equally(Objective objective) noexcept {
  return objective == Objective::Las || objective == Objective::Ftf ||
         objective == Objective::Makespan || objective == Objective::Hierarchical ||
         objective == Objective::Slo;
}
/// Max-min over jobs: only these look at pairs.
[[nodiscard]] constexpr bool is_max_min(Objective objective) noexcept {
  return splits_equally(objective) && objective != Objective::Slo;
}

enum class CostForm : std::uint8_t {
  Sum,    // of each job's work per dollar
  Ratio,  // of all work to all dollars
};

struct ObjectiveRule {
  Objective objective = Objective::Las;
  CostForm cost = CostForm::Sum;
  std::vector<double> prices;          // by type
  std::vector<double> entity_weights;  // by entity, for Hierarchical
  int max_levels = 32;
};

/// `classes` and `fluid.classes` are in step. What `first` and `second` of a class mean:
///   Makespan  work left                          Slo  rate its deadline needs (0: none)
///   Ftf       isolated time and time since it came, each over the work left
[[nodiscard]] Shares shares_for(const ObjectiveRule& rule, const Fluid& fluid,
                                std::span<const JobClass> classes, std::span<const JobFacts> jobs);

}  // namespace berth::gavel
