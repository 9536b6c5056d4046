// Random loads for a live world under one policy of the registry: times of no common step,
// estimates wrong both ways, a few users in two groups.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/live_world.h"
#include "support/registry_scenario.h"

namespace berth::test {

using LiveSpec = berth::JobSpec;

struct DrawnLoad {
  WorldOptions options;
  std::vector<std::pair<double, LiveSpec>> jobs;  // and when they come
};

/// On four devices, with settings of the policy that small times exercise; no jobs yet.
[[nodiscard]] inline DrawnLoad empty_load(const std::string& policy, std::uint64_t seed) {
  DrawnLoad load;
  load.options.cluster = seed % 2 == 0 ? "1x4" : "2x2";
  load.options.seed = seed;
  load.options.scheduling.policy = {policy, scenario_for(policy, seed).settings};
  load.options.scheduling.spare_slots = 64;
  return load;
}

enum class DrawnName : std::uint8_t { None, OneOfThree };

/// The job of this number, which runs so many seconds.
[[nodiscard]] inline LiveSpec drawn_job(Rng& rng, int number, double length, DrawnName name) {
  LiveSpec spec =
      spec_of({"run", fmt::format("{:.6f}", length)}, std::min<std::int32_t>(4, 1 << rng.below(3)));
  spec.key = fmt::format("job-{}", number);
  spec.user = fmt::format("u{}", rng.below(3));
  spec.group = fmt::format("g{}", rng.below(2));
  if (name == DrawnName::OneOfThree) spec.name = fmt::format("n{}", rng.below(3));
  spec.model = rng.below(2) == 0 ? "resnet50" : "vgg16";
  spec.priority = static_cast<std::int32_t>(rng.below(3));
  spec.estimate = static_cast<std::int64_t>(length * (0.4 + rng.uniform())) + 1;
  return spec;
}

/// One in three may have any size.
inline void draw_range(Rng& rng, LiveSpec& spec) {
  if (rng.below(3) != 0) return;
  spec.gpus_min = 1;
  spec.gpus_max = 4;
}

}  // namespace berth::test
