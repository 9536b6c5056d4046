// The gradient's noise scale by progress: a staircase through scattered measurements.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "perf/fit.h"

namespace berth {

Result<NoiseFit> fit_noise(std::vector<NoisePoint> measured, const NoiseFitOptions& options) {
  const std::int32_t steps = options.steps;
  for (const NoisePoint& point : measured) {
    const bool good =
        std::isfinite(point.scale) && point.scale > 0 && point.progress >= 0 && point.progress <= 1;
    if (!good)
      return fail(
          fmt::format("a noise scale of {} at {} cannot be fitted", point.scale, point.progress));
  }
  if (measured.empty()) return fail("no noise scale was measured (give at least one point)");
  std::ranges::sort(measured, {},
                    [](const NoisePoint& p) { return std::pair(p.progress, p.scale); });
  std::vector<std::vector<double>> by_step(static_cast<std::size_t>(steps));
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (is_held_back(i, measured.size())) continue;
    const auto step = static_cast<std::int32_t>(measured[i].progress * steps);
    by_step[static_cast<std::size_t>(std::min(step, steps - 1))].push_back(measured[i].scale);
  }
  NoiseFit fit;
  for (std::size_t step = 0; step < by_step.size(); ++step) {
    if (by_step[step].empty()) continue;
    const double from = fit.points.empty() ? 0 : static_cast<double>(step) / steps;
    fit.points.push_back({from, geometric_mean(by_step[step])});
  }
  ErrorMeter meter(measured.size());
  const double batch = std::sqrt(options.first * options.most);
  for (const NoisePoint& point : measured) {
    const double scale = noise_scale_at(fit.points, point.progress);
    meter.add(efficiency(scale, options.first, batch),
              efficiency(point.scale, options.first, batch));
  }
  fit.error = meter.result();
  return fit;
}

}  // namespace berth
