// The jobs of `berth demo`: which, when, how large; and a training small enough to be part of the
// program, for where examples/trainer was not built.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "apps/demo.h"
#include "model/job_spec.h"

namespace berth {

struct DemoJob {
  std::string_view name;
  std::int32_t gpus = 1;
  double submit = 0;   // seconds after the first
  double seconds = 1;  // of training, on a machine that keeps up
};
inline constexpr std::int32_t kDemoGpus = 4;

/// By submit time. In an order that first come, first served handles badly: long ones first, then
/// one that needs every device, then short ones behind it.
[[nodiscard]] std::span<const DemoJob> demo_jobs();
/// With its output in `directory`.
[[nodiscard]] JobSpec demo_spec(const DemoJob& job, const DemoOptions& options,
                                const std::string& directory);

/// Trains a small network by stochastic gradient descent on generated data, with a pause in each
/// step that stands for the device; the mean squared error afterwards.
[[nodiscard]] double demo_training(std::int64_t epochs);

}  // namespace berth
