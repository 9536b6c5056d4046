// Pollux's model of an iteration with its seven parameters, and how they are learnt online from
// the times a job has shown. Optimistic where nothing was seen: a job that never had two GPUs is
// believed to synchronise for free, which makes the scheduler try.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/rng.h"

namespace berth::goodput {

/// Devices of a job, as far as the model cares.
struct Gang {
  std::int32_t nodes = 1;
  std::int32_t gpus = 1;
  friend bool operator==(const Gang&, const Gang&) = default;
};

struct ThroughputParams {
  double alpha_grad = 0.1, beta_grad = 0.01;    // one sub-batch of m: alpha + beta m
  double alpha_local = 0.1, beta_local = 0.01;  // synchronising in one node: alpha + beta (K - 2)
  double alpha_node = 0.1, beta_node = 0.01;    // and over several
  double overlap = 1.001;                       // gamma, 1 (none) to 10

  [[nodiscard]] double grad_seconds(double per_step) const noexcept {
    return alpha_grad + beta_grad * per_step;
  }
  [[nodiscard]] double sync_seconds(const Gang& gang) const noexcept;
  /// Of the step that synchronises.
  [[nodiscard]] double optimizer_step_seconds(const Gang& gang, double per_step) const noexcept;
  [[nodiscard]] double iteration_seconds(const Gang& gang, double per_step,
                                         std::int32_t extra_steps) const noexcept;
};

/// What one configuration took.
struct StepTimes {
  Gang gang;
  double per_step = 1;            // m
  double accumulate_seconds = 0;  // 0 = not seen
  double optimizer_seconds = 0;
};

/// RMSE of the logarithms of both kinds of step, plus the pull of the priors.
[[nodiscard]] double fit_loss(const ThroughputParams& params,
                              std::span<const StepTimes> seen) noexcept;

/// The parameters that explain best what was seen, from 30 scattered starts, under the optimistic
/// priors. `seen` must not be empty. Deterministic in (seen, rng).
[[nodiscard]] ThroughputParams fit_throughput(std::span<const StepTimes> seen, Rng rng);

}  // namespace berth::goodput
