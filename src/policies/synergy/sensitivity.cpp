#include "policies/synergy/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace berth {
namespace {

constexpr double kGoodEnough = 0.9;
constexpr double kSteep = 0.1;  // neighbours that differ by more are measured halfway between

}  // namespace

SynergyAxes SynergyAxes::of_server(std::int32_t gpus, std::int32_t cores, std::int64_t memory_mib) {
  SynergyAxes axes;
  gpus = std::max(gpus, 1);
  axes.max_cores = std::max(cores, 1);
  axes.fair.cores = std::max(cores / gpus, 1);
  const std::int64_t fair = memory_mib / gpus;
  for (const std::int64_t thirds : {1, 3, 6, 9, 12}) {
    const std::int64_t level = fair * thirds / 3;
    if (level > memory_mib || (!axes.memory_mib.empty() && level <= axes.memory_mib.back()))
      continue;
    axes.memory_mib.push_back(level);
    if (level <= fair) axes.fair.level = static_cast<std::int32_t>(axes.memory_mib.size()) - 1;
  }
  return axes;
}

Result<Sensitivity> Sensitivity::from_matrix(const SynergyAxes& axes,
                                             std::span<const double> throughput) {
  Sensitivity made;
  made.max_cores_ = axes.max_cores;
  made.levels_ = static_cast<std::int32_t>(axes.memory_mib.size());
  made.fair_ = axes.fair;
  const auto levels = axes.memory_mib.size();
  if (throughput.size() != static_cast<std::size_t>(axes.max_cores) * levels || levels == 0) {
    return fail(fmt::format("a throughput matrix of {} cores and {} memory levels has {} entries",
                            axes.max_cores, levels, throughput.size()));
  }
  for (std::size_t i = 0; i < throughput.size(); ++i) {
    if (!std::isfinite(throughput[i]) || throughput[i] <= 0) {
      return fail(fmt::format("throughput at {} cores, memory level {} must be positive, got {}",
                              i / levels + 1, i % levels, throughput[i]));
    }
    const bool falls = (i >= levels && throughput[i] < throughput[i - levels]) ||
                       (i % levels > 0 && throughput[i] < throughput[i - 1]);
    if (falls) {
      return fail(
          fmt::format("throughput falls at {} cores, memory level {}", i / levels + 1, i % levels));
    }
  }
  made.w_.assign(throughput.begin(), throughput.end());
  const double fair = made.at(made.fair_);
  for (double& w : made.w_) w /= fair;
  made.find_demand();
  return made;
}

Result<Sensitivity> Sensitivity::from_column(const SynergyAxes& axes,
                                             std::span<const double> column,
                                             const DataCache& cache) {
  std::vector<double> matrix;
  matrix.reserve(column.size() * axes.memory_mib.size());
  for (const double measured : column) {
    for (const std::int64_t memory : axes.memory_mib)
      matrix.push_back(std::min(measured, cache.samples_per_second(static_cast<double>(memory))));
  }
  return from_matrix(axes, matrix);
}

SynergyShare cut_to_fair(const SynergyShare& share, const SynergyShare& fair) noexcept {
  return {std::min(share.cores, fair.cores), std::min(share.level, fair.level)};
}

/// Whoever is cut down to the proportional share later must not fall below its throughput, whatever
/// the matrix looks like; relative to that share this is 1.
bool Sensitivity::is_enough(const SynergyShare& share) const noexcept {
  const double wanted = std::max(kGoodEnough * w_.back(), 1.0);
  return at(share) >= wanted && at(cut_to_fair(share, fair_)) >= 1;
}

void Sensitivity::find_demand() {
  demand_ = {max_cores_, levels_ - 1};
  while (demand_.cores > 1 && is_enough({demand_.cores - 1, demand_.level})) --demand_.cores;
  while (demand_.level > 0 && is_enough({demand_.cores, demand_.level - 1})) --demand_.level;
}

SynergyShare Sensitivity::least_of(const SynergyShare& share) const noexcept {
  SynergyShare least = cut_to_fair(share, fair_);
  const double kept = std::min(at(least), 1.0);
  while (least.cores > 1 && at({least.cores - 1, least.level}) >= kept) --least.cores;
  while (least.level > 0 && at({least.cores, least.level - 1}) >= kept) --least.level;
  return least;
}

OptimisticProfiler::OptimisticProfiler(const SynergyAxes& axes) : max_cores_(axes.max_cores) {
  for (const std::int32_t cores : {1, axes.fair.cores, axes.max_cores}) {  // ascending as written
    if (first_.empty() || first_.back() != cores) first_.push_back(cores);
  }
}

std::optional<std::int32_t> OptimisticProfiler::next() const {
  if (!first_.empty()) return first_.back();
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const Point& low = points_[i - 1];
    const Point& high = points_[i];
    if (high.cores - low.cores < 2) continue;
    const double larger = std::max(low.throughput, high.throughput);
    if (std::abs(high.throughput - low.throughput) > kSteep * larger)
      return low.cores + (high.cores - low.cores) / 2;
  }
  return std::nullopt;
}

Result<void> OptimisticProfiler::measured(double throughput) {
  const auto cores = next();
  if (!cores) return fail("nothing was to be measured: the profile is complete");
  if (!std::isfinite(throughput) || throughput <= 0) {
    return fail(fmt::format("throughput at {} cores must be a positive number, got {}", *cores,
                            throughput));
  }
  if (!first_.empty()) first_.pop_back();
  const auto place = std::ranges::lower_bound(points_, *cores, {}, &Point::cores);
  points_.insert(place, Point{*cores, throughput});
  return {};
}

std::vector<double> OptimisticProfiler::column() const {
  std::vector<double> values;
  std::size_t above = 0;  // the first point that is not below
  for (std::int32_t cores = 1; cores <= max_cores_ && !points_.empty(); ++cores) {
    while (above + 1 < points_.size() && points_[above].cores < cores) ++above;
    const Point& high = points_[above];
    double value = high.throughput;
    if (above > 0 && high.cores > cores) {
      const Point& low = points_[above - 1];
      const double way = static_cast<double>(cores - low.cores) / (high.cores - low.cores);
      value = low.throughput + way * (high.throughput - low.throughput);
    }
    // Noise must not let more cores look slower.
    values.push_back(values.empty() ? value : std::max(value, values.back()));
  }
  return values;
}

}  // namespace berth
