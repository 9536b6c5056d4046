// The fractional form of finish-time fairness, as later simulators run it under the name of Themis:
// every job gets the fraction of time that makes the largest rho smallest. Found by bisection on
// rho, since a given rho says what each job needs: 50 x O(jobs).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth::themis {

struct FairShareJob {
  double elapsed = 0;  // seconds since it came
  double left = 0;     // seconds of running it still needs, above zero
  double ideal = 0;    // T_id: seconds it would have taken on its own share, above zero
  std::int32_t gpus = 1;
};

struct TimeFractions {
  double rho = 0;
  std::vector<double> fractions;  // of the time, in [0, 1]; their GPUs fit
};
[[nodiscard]] TimeFractions fair_time_fractions(std::span<const FairShareJob> jobs,
                                                std::int64_t gpus);

/// Rate at which a job runs on its n-th part of the cluster.
[[nodiscard]] double isolated_rate(std::int64_t gpus, std::size_t jobs,
                                   std::int32_t wanted) noexcept;

}  // namespace berth::themis
