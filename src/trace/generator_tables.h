// The statistics the generator draws from, one table per published trace. Computed from the traces
// named in docs/formats/traces.md; facts about them, not parts of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace berth {

/// Share of all jobs that come from a virtual cluster and ask for so many GPUs.
struct SizeRow {
  int cluster;
  int gpus;
  double share;
};

/// Levels at which run times are tabulated; between them ln(run time) is interpolated.
inline constexpr std::array kLevels{0.0, 0.01,  0.025, 0.05,  0.1,  0.15,  0.2,   0.25, 0.3, 0.35,
                                    0.4, 0.45,  0.5,   0.55,  0.6,  0.65,  0.7,   0.75, 0.8, 0.85,
                                    0.9, 0.925, 0.95,  0.975, 0.99, 0.995, 0.999, 1.0};

/// Sizes 1, 2 to 7, 8, 9 to 32 and above 32 have run times of their own; runs join the last two.
inline constexpr std::size_t kSizeClasses = 5;
inline constexpr std::size_t kRunClasses = 4;
[[nodiscard]] constexpr std::size_t size_class_of(int gpus) noexcept {
  if (gpus == 1) return 0;
  if (gpus < 8) return 1;
  if (gpus == 8) return 2;
  return gpus <= 32 ? 3 : 4;
}

struct DurationRow {
  int cluster;  // -1 = every cluster without a row of its own
  std::size_t size_class;
  std::array<double, kLevels.size()> seconds;
};

/// Runs of like submissions by length: 1, 2, 3, 4, 5-9, 10-19, 20-49, 50-99, 100-199, 200-399,
/// 400-700.
inline constexpr std::array<int, 12> kRunBins{1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 400, 701};
using RunShares = std::array<double, kRunBins.size() - 1>;  // share of jobs in runs of that length

/// How a job ended, given its GPU time x relative to the mean: odds exp(offset + slope * ln x) of
/// being killed or failed against completed.
struct StateLaw {
  double killed_offset, killed_slope;
  double failed_offset, failed_slope;
  bool is_known;
};

struct SourceTable {
  std::string_view name;
  std::string_view description;
  double jobs_per_day;
  std::span<const SizeRow> sizes;
  std::span<const DurationRow> durations;
  std::span<const double> queue_shares;  // empty = queues are the clusters of `sizes`
  std::array<RunShares, kRunClasses> runs;
  double gap_seconds;  // mean time between the jobs of a run of n jobs:
  double gap_falloff;  //   gap_seconds * n^-gap_falloff
  double run_spread;   // how far the jobs of a run differ, as a step in level
  double day_sigma;    // sd of the log of a day's rate
  double hour_sigma;   // the same for an hour; neighbouring hours are alike
  std::array<double, 24> hours;
  std::array<double, 7> days;  // from Monday
  StateLaw states;
};

[[nodiscard]] std::span<const SourceTable> source_tables() noexcept;

}  // namespace berth
