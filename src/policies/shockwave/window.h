// A window of rounds planned at once: who runs in which of them, so that the welfare of all jobs,
// sum of weight * log(share of the work done by the end of the window), is large and the longest
// run that remains after it is short. A heuristic: GPU-rounds go one by one to where they raise
// welfare most, then rounds are dealt anew where that is better. Nothing is known here of devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth::shockwave {

inline constexpr double kLeastProgress = 1e-3;  // log needs something

struct WindowJob {
  std::int32_t gpus = 1;
  double progress = 0;     // share of its work done
  double left_rounds = 1;  // rounds of running it still needs, above zero
  double weight = 1;

  /// Share of the work done after so many more rounds.
  [[nodiscard]] double progress_after(std::int32_t rounds) const noexcept;
};

struct WindowRule {
  std::int32_t rounds = 20;
  double makespan_weight = 5;
  std::size_t swap_jobs = 100;  // with more jobs rounds are not dealt anew
};

/// Welfare over jobs and rounds, less the weight of the longest run after the window in windows.
[[nodiscard]] double value_of(std::span<const WindowJob> jobs, std::span<const std::int32_t> rounds,
                              const WindowRule& rule);

struct Window {
  std::vector<std::vector<std::uint32_t>> rounds;  // jobs of each, in the order given
  std::vector<std::int32_t> counts;                // rounds of each job
  double value = 0;
};
/// Jobs of a round never need more than `gpus`. The more urgent rounds come first.
[[nodiscard]] Window plan_window(std::span<const WindowJob> jobs, std::int64_t gpus,
                                 const WindowRule& rule);

/// Predicted finish-time fairness: when it will end if it has its equal part from now on, over when
/// it would have ended with it from the beginning. All in seconds.
[[nodiscard]] constexpr double predicted_rho(double age, double left_on_its_part,
                                             double ideal_so_far) noexcept {
  const double ideal = ideal_so_far + left_on_its_part;
  return ideal > 0 ? (age + left_on_its_part) / ideal : 1;
}

}  // namespace berth::shockwave
