// Minimum satisfactory shares (ElasticFlow): the fewest GPUs with which an elastic job still meets
// its deadline, given what jobs with earlier deadlines need, and who profits most from GPUs left.
//
// Time is cut into slots of equal length; what is free in which slot is a step function with few
// steps, so that a share costs O(steps x sizes), whatever the deadline.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "policies/common/speed_curve.h"

namespace berth::elasticflow {

/// So many GPUs for so many slots.
struct Stretch {
  std::int64_t slots = 0;
  std::int64_t gpus = 0;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

inline constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max() / 2;

struct Demand {
  const SpeedCurve* curve = nullptr;
  double work = 0;
  std::int64_t slots = 0;  // that end by its deadline
};

struct Share {
  std::size_t size = 0;            // index into the curve: the most it ever holds
  std::vector<Stretch> stretches;  // what it holds from now on until it ends

  /// What is left of it after so many slots.
  [[nodiscard]] Share after(std::int64_t slots) const;
  [[nodiscard]] double work(const SpeedCurve& curve, double slot_seconds) const noexcept;
};

class FreeGpus {
 public:
  explicit FreeGpus(std::int64_t gpus) : steps_{{kEndless, gpus}} {}
  /// From known steps on; what comes after them is like the last.
  explicit FreeGpus(std::vector<Stretch> steps);

  /// The smallest size with which the work is done in time on what is free; nothing if none does.
  [[nodiscard]] std::optional<Share> share(const Demand& demand, double slot_seconds) const;
  /// False, and nothing happened: that much is not free.
  [[nodiscard]] bool try_take(const Share& share);
  [[nodiscard]] std::int64_t now() const noexcept { return steps_.front().gpus; }
  [[nodiscard]] const std::vector<Stretch>& steps() const noexcept { return steps_; }

 private:
  [[nodiscard]] bool try_size(const Demand& demand, std::size_t size, double slot_seconds,
                              std::vector<Stretch>& stretches) const;
  std::vector<Stretch> steps_;  // the last one is endless
};

/// A job that may grow on GPUs left over in the current slot.
struct Grower {
  const SpeedCurve* curve = nullptr;
  std::size_t base = 0;  // size of its share; the smallest one without a deadline
  std::size_t size = 0;  // sizes it has now: 0 = nothing, n = the n-th of the curve
};

/// GPU time saved later for each GPU spent now by the next larger size.
[[nodiscard]] double gain_of_growth(const Grower& job) noexcept;
/// Next larger sizes while they fit, largest gain first (ties: smaller size, lower index). Answers
/// what is left.
std::int64_t grow(std::span<Grower> jobs, std::int64_t left);

}  // namespace berth::elasticflow
