#include "policies/synergy/sensitivity.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace berth::synergy {
namespace {

constexpr double kGoodEnough = 0.9;  // of the best throughput

}  // namespace

Axes Axes::of_server(std::int32_t gpus, std::int32_t cores, std::int64_t memory_mib) {
  Axes axes;
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

Result<Sensitivity> Sensitivity::from_matrix(const Axes& axes, std::span<const double> throughput) {
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
  // Relative to the proportional share models of any speed compare.
  const double fair = made.at(made.fair_);
  for (double& w : made.w_) w /= fair;
  made.find_demand();
  return made;
}

Share cut_to_fair(const Share& share, const Share& fair) noexcept {
  return {std::min(share.cores, fair.cores), std::min(share.level, fair.level)};
}

/// Whoever is cut down to the proportional share later must not fall below its throughput, whatever
/// the matrix looks like; relative to that share this is 1.
bool Sensitivity::is_enough(const Share& share) const noexcept {
  const double wanted = std::max(kGoodEnough * w_.back(), 1.0);
  return at(share) >= wanted && at(cut_to_fair(share, fair_)) >= 1;
}

void Sensitivity::find_demand() {
  demand_ = {max_cores_, levels_ - 1};
  while (demand_.cores > 1 && is_enough({demand_.cores - 1, demand_.level})) --demand_.cores;
  while (demand_.level > 0 && is_enough({demand_.cores, demand_.level - 1})) --demand_.level;
}

Share Sensitivity::least_of(const Share& share) const noexcept {
  Share least = cut_to_fair(share, fair_);
  const double kept = std::min(at(least), 1.0);
  while (least.cores > 1 && at({least.cores - 1, least.level}) >= kept) --least.cores;
  while (least.level > 0 && at({least.cores, least.level - 1}) >= kept) --least.level;
  return least;
}

}  // namespace berth::synergy
