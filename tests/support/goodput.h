// The job of the goodput specification: its parameters, its batches, and the best batch by looking
// at every one.
#pragma once

#include <fmt/format.h>

#include "model/cluster.h"
#include "policies/goodput/batch_choice.h"
#include "policies/goodput/throughput.h"

namespace berth::test {

using goodput::BatchChoice;
using goodput::BatchRange;
using goodput::Gang;
using goodput::ThroughputParams;

inline constexpr ThroughputParams kParams{.alpha_grad = .05,
                                          .beta_grad = .002,
                                          .alpha_local = .02,
                                          .beta_local = .002,
                                          .alpha_node = .1,
                                          .beta_node = .005,
                                          .overlap = 2};
inline constexpr BatchRange kRange{.first = 128,
                                   .most_total = 4096,
                                   .least_per_step = 1,
                                   .most_per_step = 256,
                                   .accumulates = true,
                                   .two_on_one = false};

inline BatchChoice exhaustive(const Gang& gang, double phi,
                              const ThroughputParams& params = kParams) {
  BatchChoice best;
  const auto seconds = [&](std::int32_t m, std::int32_t s) {
    return params.iteration_seconds(gang, m, s);
  };
  for (std::int32_t s = 0; gang.gpus * (s + 1) <= kRange.most_total; ++s) {
    for (std::int32_t m = 1; m <= kRange.most_per_step; ++m) {
      const std::int32_t total = gang.gpus * m * (s + 1);
      if (total < kRange.first || total > kRange.most_total) continue;
      const double goodput = goodput_of(kRange, gang.gpus, phi, m, s, seconds);
      if (goodput > best.goodput) best = {m, s, goodput};
    }
  }
  return best;
}

inline BatchChoice fifty(const Gang& gang, double phi) {
  return best_batch(kRange, gang.gpus, phi, [&](std::int32_t m, std::int32_t s) {
    return kParams.iteration_seconds(gang, m, s);
  });
}

}  // namespace berth::test
