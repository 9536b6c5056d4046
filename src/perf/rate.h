// How fast a job runs on the devices it was given, relative to the reference placement of its
// trace. Today two layers exist: the trace's duration is the truth (rate 1 everywhere), and an
// optional slowdown for gangs spread over more nodes than they need. Callers ask for a rate and
// never how.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "model/trace.h"

namespace berth {

/// Largest tensor over model size; above `kSkewLimit` traffic concentrates on one server. Nothing
/// known of the model counts as balanced.
[[nodiscard]] double model_skew(std::string_view model) noexcept;
inline constexpr double kSkewLimit = 0.5;

enum class SpreadCost : std::uint8_t { Ignored, ByModel };

struct PlacementFacts {
  std::int32_t nodes = 1;         // nodes the gang uses
  std::int32_t fewest_nodes = 1;  // nodes it would use at best
};

/// ByModel: a spread gang of a skewed model runs at 0.6, any other at 0.95.
[[nodiscard]] Rate spread_rate(SpreadCost cost, std::string_view model,
                               const PlacementFacts& facts) noexcept;

}  // namespace berth
