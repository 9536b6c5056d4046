// Between which prices a resource moves, learnt from the jobs seen so far: the dearest price is the
// most that any of them pays for a unit at best, the cheapest one is so low that all slots together
// start at no more than a quarter of what the least useful job is worth. Both only widen.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace berth::oasis {

class PriceRange {
 public:
  /// `capacity`: of all servers, resources and slots together.
  PriceRange(std::size_t resources, double capacity) : high_(resources, 0.0), capacity_(capacity) {}

  struct Sample {
    double best = 0;   // utility of the job if it is done as soon as possible
    double worst = 0;  // the least it is worth while it is worth anything
    double work = 0;   // worker-slots, rounded up
  };
  /// `need` is what one unit of the job takes. True if the range changed.
  bool see(const Sample& sample, std::span<const std::int64_t> need);

  [[nodiscard]] bool is_known() const noexcept { return least_worth_ < kNone; }
  [[nodiscard]] double low() const noexcept { return least_share_ * least_worth_ / 4; }
  [[nodiscard]] std::span<const double> high() const noexcept { return high_; }
  /// ln(U / L), at least 1: utility is within twice this factor of the best possible, for jobs that
  /// are small against a server.
  [[nodiscard]] double alpha() const;

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> high_;
  double capacity_;
  double least_share_ = kNone;  // 1 / eta: part of everything that the smallest job takes
  double least_worth_ = kNone;  // utility per unit of resource and slot
};

}  // namespace berth::oasis
