// The least value of a smooth function of a few variables within bounds, near a start: BFGS with
// differences for derivatives, each step projected on the bounds. Deterministic; knows nothing of
// what is minimised. A step costs 2n + a few evaluations, a run some dozen steps.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace berth {

struct BoundedProblem {
  std::function<double(std::span<const double>)> value;  // finite within the bounds
  std::vector<double> start;
  std::vector<double> low, high;  // one each per variable
  int max_steps = 200;
};

struct BoundedMinimum {
  std::vector<double> at;
  double value = 0;
};

[[nodiscard]] BoundedMinimum minimise(const BoundedProblem& problem);

}  // namespace berth
