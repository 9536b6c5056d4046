// What the training code of a job reports, without what makes no sense. People write that code: it
// may report nothing, nothing new, less than before, or values that are not numbers. Nonsense
// counts as silence, so that no fit, sort or forecast ever meets it. A job may still fall back
// behind what it reported before: that is for the reader to handle.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/view.h"

namespace berth {

inline constexpr double kMostEpochs = 1e9;
inline constexpr double kLargestLoss = 1e30;        // either sign
inline constexpr double kLargestNoiseScale = 1e12;  // samples

[[nodiscard]] inline bool is_sensible_loss(double loss) noexcept {
  return std::abs(loss) <= kLargestLoss;  // false for NaN
}

[[nodiscard]] inline bool is_sensible(const TrainingReport& report) noexcept {
  return report.epochs >= 0 && report.epochs <= kMostEpochs && is_sensible_loss(report.loss) &&
         report.noise_scale >= 0 && report.noise_scale <= kLargestNoiseScale;
}

[[nodiscard]] inline std::optional<TrainingReport> sensible_report(const View& view, JobId job) {
  const auto report = view.report(job);
  if (!report || !is_sensible(*report)) return std::nullopt;
  return report;
}

/// Appends the loss after each whole epoch from `first` on, up to the first that makes no sense.
inline void sensible_losses(const View& view, JobId job, std::int64_t first,
                            std::vector<double>& losses) {
  std::size_t at = losses.size();
  view.losses(job, first, losses);
  while (at < losses.size() && is_sensible_loss(losses[at])) ++at;
  losses.resize(at);
}

}  // namespace berth
