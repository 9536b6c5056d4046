// How a job's throughput answers to CPU cores and host memory per GPU: the matrix W[c][m], relative
// to the share in proportion to GPUs (1 = as fast as there). Cores are whole and start at one;
// memory has a few levels, the proportional share among them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace berth::synergy {

/// Cores and memory level of every GPU of a job.
struct Share {
  std::int32_t cores = 1;
  std::int32_t level = 0;  // index into the memory levels
  friend bool operator==(const Share&, const Share&) = default;
};

/// What servers offer one GPU, alike for all jobs of a pool.
struct Axes {
  std::int32_t max_cores = 1;            // of one GPU: all cores of a server
  std::vector<std::int64_t> memory_mib;  // ascending levels; one level of 0 if memory is no matter
  Share fair;                            // in proportion to GPUs
  /// Levels of 1/3, 1, 2, 3 and 4 proportional shares; whole cores, at least one.
  [[nodiscard]] static Axes of_server(std::int32_t gpus, std::int32_t cores,
                                      std::int64_t memory_mib);
};

class Sensitivity {
 public:
  /// `throughput` by core (from one) and level, rows of levels; positive, non-decreasing in both.
  [[nodiscard]] static Result<Sensitivity> from_matrix(const Axes& axes,
                                                       std::span<const double> throughput);
  /// Relative to the proportional share.
  [[nodiscard]] double at(const Share& share) const noexcept {
    return w_[static_cast<std::size_t>((share.cores - 1) * levels_ + share.level)];
  }
  [[nodiscard]] std::int32_t max_cores() const noexcept { return max_cores_; }
  [[nodiscard]] std::int32_t levels() const noexcept { return levels_; }
  [[nodiscard]] const Share& fair() const noexcept { return fair_; }
  /// The best-case demand: fewest cores, then least memory, for nine tenths of the best throughput,
  /// and for no less than the proportional share gives, also when cut down to it later.
  [[nodiscard]] const Share& demand() const noexcept { return demand_; }
  /// `share` without what it holds above the proportional share, and without what of that is no use
  /// (half a data set in the cache, say). Never more than `share` in either dimension.
  [[nodiscard]] Share least_of(const Share& share) const noexcept;

 private:
  Sensitivity() = default;
  void find_demand();
  [[nodiscard]] bool is_enough(const Share& share) const noexcept;

  std::int32_t max_cores_ = 0;
  std::int32_t levels_ = 0;
  Share fair_;
  Share demand_;
  std::vector<double> w_;
};

/// No more than the proportional share in either dimension.
[[nodiscard]] Share cut_to_fair(const Share& share, const Share& fair) noexcept;

}  // namespace berth::synergy
