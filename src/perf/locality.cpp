#include "perf/locality.h"

#include <algorithm>

#include "perf/rate_function.h"

namespace berth {

LocalitySensitivity locality_sensitivity(const IterationParams& params, double batch,
                                         std::int32_t gpus, const Links& links) {
  const double compute = params.alpha + params.beta * batch;
  const auto seconds = [&](Level level) {
    const double sync = sync_time(params.gradient_bytes, gpus, links.at(level));
    return overlapped(compute, sync, params.overlap, 0);
  };
  // Relative to NVLink even where a server has none, so that the sensitivities of models compare.
  const double best = seconds(Level::Nvlink);
  LocalitySensitivity sensitivity{};
  for (const Level level : kAllLevels)
    sensitivity[static_cast<std::size_t>(level)] = seconds(level) / best - 1;
  return sensitivity;
}

std::string_view to_string(LocalityLabel label) noexcept {
  switch (label) {
    case LocalityLabel::Any: return "any";
    case LocalityLabel::Prefer: return "prefer";
    case LocalityLabel::Strict: break;
  }
  return "strict";
}

LocalityLabel locality_label(const LocalitySensitivity& sensitivity) noexcept {
  const double in_rack = sensitivity[static_cast<std::size_t>(Level::Rack)];
  if (in_rack > kStrictSensitivity) return LocalityLabel::Strict;
  return in_rack > kPreferSensitivity ? LocalityLabel::Prefer : LocalityLabel::Any;
}

Level first_level(LocalityLabel label, Level lowest_possible) noexcept {
  const Level wanted = label == LocalityLabel::Strict   ? Level::Server
                       : label == LocalityLabel::Prefer ? Level::Rack
                                                        : Level::CrossRack;
  return std::max(wanted, lowest_possible);
}

}  // namespace berth
