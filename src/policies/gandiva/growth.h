// Grow-shrink: a job that may be larger than it asked to be takes GPUs of its server that have been
// idle for a while, and gives them back as soon as another job of the server needs them. A job that
// holds more GPUs than it asked for is a grown one; no list of them is kept.
#pragma once

#include <cstdint>
#include <optional>

#include "policies/gandiva/housing.h"
#include "policies/kit/pass.h"

namespace berth::gandiva {

/// GPUs the job has after growing once on a server with `free` idle GPUs.
[[nodiscard]] std::int32_t grown(std::int32_t current, std::int32_t most, std::int32_t free,
                                 GrowStep step) noexcept;

[[nodiscard]] inline bool is_grown(const View& view, const Plan& plan, JobId job) {
  return plan.gpus_of(job) > view.gpus(job);
}

/// So many of the free devices: an aligned block if there is one, for it is likely to be close
/// together; otherwise the lowest.
[[nodiscard]] std::uint64_t choose_devices(std::uint64_t free, std::int32_t gpus);

class Growth {
 public:
  Growth(const Options& options, Housing& housing) : options_(options), housing_(housing) {}

  /// Notes since when there are idle GPUs beside a job that may take them.
  void watch(const Pass& pass, Home home);
  /// GPUs that were idle for a whole period while nobody waits go to a job of their server.
  void grow_due(Pass& pass);
  void shrink_if_needed(Pass& pass, Home home);
  /// When the next idle GPUs are due; kNever if there are none.
  [[nodiscard]] Time next_due() const noexcept {
    return idle_.empty() ? kNever : idle_.first() + options_.idle_period;
  }

 private:
  [[nodiscard]] std::optional<JobId> who_grows(const Pass& pass, Home home) const;
  void grow(Pass& pass, Home home);

  const Options& options_;
  Housing& housing_;
  HomeTimers idle_;  // since when
};

}  // namespace berth::gandiva
