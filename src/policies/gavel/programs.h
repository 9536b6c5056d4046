// Gavel's programs that are not plain max-min: sums, work per dollar, promised rates, finish-time
// fairness. Each answers with fractions; if the solver should fail, with an even split.
#pragma once

#include <span>
#include <vector>

#include "policies/gavel/fluid.h"

namespace berth::gavel {

/// Largest sum over all jobs of worth * fraction; `worth` by class and type, of one job. `floors`,
/// if given, are rates that each class must reach, and must be feasible.
[[nodiscard]] Shares maximise(const Fluid& fluid, std::span<const double> worth,
                              std::span<const double> floors = {});

/// Largest ratio of all work done to what its devices cost (Charnes and Cooper's transformation);
/// `prices` by type, of one device. Often one class alone gives the best ratio: the others get
/// nothing then.
[[nodiscard]] Shares best_ratio(const Fluid& fluid, std::span<const double> prices,
                                std::span<const double> floors = {});

/// Rates that can be reached together and fall short of `wanted` by the least relative amount in
/// sum over all jobs.
[[nodiscard]] std::vector<double> reachable(const Fluid& fluid, std::span<const double> wanted);

struct FinishTerms {
  double elapsed = 0;   // since the job came
  double left = 1;      // work, above zero
  double isolated = 1;  // from its coming to its end if it had its part of the cluster to itself
};

/// The largest of (elapsed + left / rate) / isolated.
[[nodiscard]] double largest_ratio(const Fluid& fluid, std::span<const FinishTerms> terms,
                                   const Shares& shares);

/// Least largest finish-time ratio, then water-filled at that ratio. Dinkelbach's method: each
/// program's answer gives a smaller ratio, until it stays.
[[nodiscard]] Shares fair_finish(const Fluid& fluid, std::span<const FinishTerms> terms,
                                 int max_levels = 32);

}  // namespace berth::gavel
