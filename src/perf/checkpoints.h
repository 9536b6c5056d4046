// How often a large job should save its state: seldom enough that saving costs little, often enough
// that a failure does. A gang fails as often as all of its devices together.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/time.h"

namespace berth {

/// What a save costs, and how long one device works on average until it fails.
struct CheckpointRule {
  Duration cost{};
  Duration device_mtbf{};
};

/// sqrt(2 cost MTBF / K): where the mean loss by failures equals that by saving.
[[nodiscard]] inline Duration checkpoint_interval(const CheckpointRule& rule, std::int32_t gpus) {
  const double mtbf = to_seconds(rule.device_mtbf) / (gpus > 0 ? gpus : 1);
  return seconds_to_duration(std::sqrt(2 * to_seconds(rule.cost) * mtbf));
}

}  // namespace berth
