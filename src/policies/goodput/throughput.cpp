#include "policies/goodput/throughput.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/portable_math.h"
#include "perf/rate_function.h"
#include "solve/bounded_minimum.h"

namespace berth::goodput {

namespace {

constexpr double kLeast = 1e-8;
constexpr double kOptimism = 1.1;  // several nodes against one, before anything was seen
constexpr int kStarts = 30;        // the loss has many local minima, and a fit is rare
constexpr double kScatter = 0.7;

/// Which parameters can be learnt from what was seen.
struct Known {
  bool sync = false;           // more than one GPU
  bool nodes = false;          // more than one node
  bool inside = false;         // several GPUs of one node
  bool many = false;           // more than two GPUs
  bool several_sizes = false;  // of the sub-batch
};

Known known_from(std::span<const StepTimes> seen) {
  Known known;
  for (const StepTimes& step : seen) {
    known.sync |= step.gang.gpus > 1;
    known.nodes |= step.gang.nodes > 1;
    known.inside |= step.gang.nodes == 1 && step.gang.gpus > 1;
    known.many |= step.gang.gpus > 2;
    known.several_sizes |= step.per_step != seen.front().per_step;
  }
  return known;
}

double mean_seconds(std::span<const StepTimes> seen) {
  double sum = 0;
  for (const StepTimes& step : seen)
    sum += step.accumulate_seconds > 0 ? step.accumulate_seconds : step.optimizer_seconds;
  return sum / static_cast<double>(seen.size());
}

/// Parameters that cannot be learnt yet take optimistic values, so that the search does not move
/// them.
ThroughputParams with_priors(ThroughputParams params, const Known& known, double half_mean) {
  if (!known.several_sizes) params.alpha_grad = half_mean;
  if (!known.sync) {
    params.alpha_local = params.alpha_node = 0;
    params.beta_local = params.beta_node = 0;
    return params;
  }
  if (!known.many) params.beta_local = params.beta_node = 0;
  if (!known.nodes) {
    params.alpha_node = params.alpha_local * kOptimism;
    params.beta_node = params.beta_local * kOptimism;
  } else if (!known.inside) {
    params.alpha_local = params.alpha_node / kOptimism;
    params.beta_local = params.beta_node / kOptimism;
  }
  return params;
}

using Vector = std::array<double, 7>;  // logarithms, and gamma as it is

ThroughputParams from_vector(std::span<const double> x) {
  return {.alpha_grad = portable_exp(x[0]),
          .beta_grad = portable_exp(x[1]),
          .alpha_local = portable_exp(x[2]),
          .beta_local = portable_exp(x[3]),
          .alpha_node = portable_exp(x[4]),
          .beta_node = portable_exp(x[5]),
          .overlap = x[6]};
}

double square(double x) { return x * x; }

}  // namespace

double ThroughputParams::sync_seconds(const Gang& gang) const noexcept {
  if (gang.gpus <= 1) return 0;
  return gang.nodes <= 1 ? alpha_local + beta_local * (gang.gpus - 2)
                         : alpha_node + beta_node * (gang.gpus - 2);
}

double ThroughputParams::optimizer_step_seconds(const Gang& gang, double per_step) const noexcept {
  return overlapped(grad_seconds(per_step), sync_seconds(gang), overlap, 0);
}

double ThroughputParams::iteration_seconds(const Gang& gang, double per_step,
                                           std::int32_t extra_steps) const noexcept {
  return extra_steps * grad_seconds(per_step) + optimizer_step_seconds(gang, per_step);
}

double fit_loss(const ThroughputParams& params, std::span<const StepTimes> seen) noexcept {
  double accumulate = 0;
  double optimizer = 0;
  int accumulated = 0;
  for (const StepTimes& step : seen) {
    if (step.accumulate_seconds > 0) {
      accumulate +=
          square(portable_log(params.grad_seconds(step.per_step) / step.accumulate_seconds));
      ++accumulated;
    }
    optimizer += square(portable_log(params.optimizer_step_seconds(step.gang, step.per_step) /
                                     step.optimizer_seconds));
  }
  const auto slope = [](double beta, double alpha) { return alpha > 0 ? square(beta / alpha) : 0; };
  return (accumulated > 0 ? std::sqrt(accumulate / accumulated) : 0) +
         std::sqrt(optimizer / static_cast<double>(seen.size())) +
         1e-3 * square(params.overlap - 1) +
         1e-2 * (slope(params.beta_node, params.alpha_node) +
                 slope(params.beta_local, params.alpha_local));
}

ThroughputParams fit_throughput(std::span<const StepTimes> seen, Rng rng) {
  const Known known = known_from(seen);
  const double half_mean = mean_seconds(seen) / 2;
  BoundedProblem problem;
  problem.low.assign(7, portable_log(kLeast));
  problem.high.assign(7, portable_log(1e6));
  problem.low[6] = 1;
  problem.high[6] = 10;
  problem.value = [&](std::span<const double> x) {
    return fit_loss(with_priors(from_vector(x), known, half_mean), seen);
  };
  BoundedMinimum best;
  for (int start = 0; start < kStarts; ++start) {
    Vector x{portable_log(0.1),
             portable_log(0.01),
             portable_log(0.1),
             portable_log(0.01),
             portable_log(0.1),
             portable_log(0.01),
             1.001};
    if (start > 0) {
      for (std::size_t i = 0; i < 6; ++i) x[i] += kScatter * rng.normal();
      x[6] = std::clamp(rng.lognormal(0, kScatter), 1.0, 10.0);
    }
    problem.start.assign(x.begin(), x.end());
    BoundedMinimum found = minimise(problem);
    if (start == 0 || found.value < best.value) best = std::move(found);
  }
  return with_priors(from_vector(best.at), known, half_mean);
}

}  // namespace berth::goodput
