// Seconds per iteration under unchanged conditions: the first iterations after a change are warm-up
// (caches, worker processes that come and go), then the median of what follows. Bounded memory.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace berth {

/// Of at least one number; of an even count the mean of the middle two.
[[nodiscard]] double median(std::vector<double> numbers);

class SteadySpeed {
 public:
  static constexpr std::size_t kWindow = 21;  // reports in the moving median
  /// Conditions changed.
  void restart();
  /// `iterations` that took so long each.
  void add(double seconds, std::int64_t iterations);
  /// Enough was seen; from then on a moving median over the last reports.
  [[nodiscard]] std::optional<double> seconds() const;

 private:
  bool has_change_passed_ = false;  // the report that holds the change itself came
  std::int64_t warm_up_ = 0;
  double warm_up_seconds_ = 0;
  std::int64_t measured_ = 0;
  double measured_seconds_ = 0;
  std::deque<double> samples_;
};

}  // namespace berth
