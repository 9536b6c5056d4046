// How a job's throughput answers to CPU cores and host memory per GPU: the matrix W[c][m], relative
// to the share in proportion to GPUs (1 = as fast as there). Cores are whole and start at one;
// memory has a few levels, the proportional share among them. Filled from a measured table, or from
// one measured column of most memory and the uniform-hit cache that computes the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "perf/data_cache.h"

namespace berth {

/// Cores and memory level of every GPU of a job.
struct SynergyShare {
  std::int32_t cores = 1;
  std::int32_t level = 0;  // index into the memory levels
  friend bool operator==(const SynergyShare&, const SynergyShare&) = default;
};

/// What servers offer one GPU, alike for all jobs of a pool.
struct SynergyAxes {
  std::int32_t max_cores = 1;            // of one GPU: all cores of a server
  std::vector<std::int64_t> memory_mib;  // ascending levels; one level of 0 if memory is no matter
  SynergyShare fair;                     // in proportion to GPUs
  /// Levels of 1/3, 1, 2, 3 and 4 proportional shares; whole cores, at least one.
  [[nodiscard]] static SynergyAxes of_server(std::int32_t gpus, std::int32_t cores,
                                             std::int64_t memory_mib);
};

class Sensitivity {
 public:
  /// `throughput` by core (from one) and level, rows of levels; positive, non-decreasing in both.
  [[nodiscard]] static Result<Sensitivity> from_matrix(const SynergyAxes& axes,
                                                       std::span<const double> throughput);
  /// `column[c]` is measured or predicted at c+1 cores with memory to spare.
  [[nodiscard]] static Result<Sensitivity> from_column(const SynergyAxes& axes,
                                                       std::span<const double> column,
                                                       const DataCache& cache);

  /// Relative to the proportional share.
  [[nodiscard]] double at(const SynergyShare& share) const noexcept {
    return w_[static_cast<std::size_t>((share.cores - 1) * levels_ + share.level)];
  }
  [[nodiscard]] std::int32_t max_cores() const noexcept { return max_cores_; }
  [[nodiscard]] std::int32_t levels() const noexcept { return levels_; }
  [[nodiscard]] const SynergyShare& fair() const noexcept { return fair_; }
  /// The best-case demand: fewest cores, then least memory, for nine tenths of the best throughput,
  /// and for no less than the proportional share gives, also when cut down to it later.
  [[nodiscard]] const SynergyShare& demand() const noexcept { return demand_; }
  /// `share` without what it holds above the proportional share, and without what of that is no use
  /// (half a data set in the cache, say). Never more than `share` in either dimension.
  [[nodiscard]] SynergyShare least_of(const SynergyShare& share) const noexcept;

 private:
  Sensitivity() = default;
  void find_demand();
  [[nodiscard]] bool is_enough(const SynergyShare& share) const noexcept;

  std::int32_t max_cores_ = 0;
  std::int32_t levels_ = 0;
  SynergyShare fair_;
  SynergyShare demand_;
  std::vector<double> w_;
};

/// No more than the proportional share in either dimension.
[[nodiscard]] SynergyShare cut_to_fair(const SynergyShare& share,
                                       const SynergyShare& fair) noexcept;

/// The optimistic profile: throughput at all cores, the proportional share and one core, then
/// halfway between neighbours that differ by more than a tenth. What was not measured is
/// interpolated.
class OptimisticProfiler {
 public:
  explicit OptimisticProfiler(const SynergyAxes& axes);
  [[nodiscard]] std::optional<std::int32_t> next() const;
  [[nodiscard]] Result<void> measured(double throughput);
  /// By cores from one; complete once next() has nothing more to ask.
  [[nodiscard]] std::vector<double> column() const;
  [[nodiscard]] std::size_t measurements() const noexcept { return points_.size(); }

 private:
  struct Point {
    std::int32_t cores = 0;
    double throughput = 0;
  };
  std::int32_t max_cores_;
  std::vector<std::int32_t> first_;  // still to be measured, the last one is next
  std::vector<Point> points_;        // ascending cores
};

}  // namespace berth
