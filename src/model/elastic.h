// With how many devices a job may run: what its request agrees to. The one place that says so, for
// the engine, the policies, the simulator and what runs for real.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace berth {

struct ElasticRange {
  std::int32_t least = 1;
  std::int32_t most = 1;
  [[nodiscard]] bool is_fixed() const noexcept { return least == most; }
  [[nodiscard]] bool includes(std::int32_t gpus) const noexcept {
    return least <= gpus && gpus <= most;
  }
  friend auto operator<=>(const ElasticRange&, const ElasticRange&) = default;
};

/// A job is elastic if its request gives a range. If it gives one end only, the other end is the
/// number of devices it asks for. A fraction of a device is never resized, nor is a job without a
/// device. For a JobRequest or a JobSpec.
template <class Request>
[[nodiscard]] ElasticRange agreed_range(const Request& request) noexcept {
  const bool is_elastic = request.gpus_min > 0 || request.gpus_max > 0;
  if (!is_elastic || request.gpu_milli < 1000 || request.gpus == 0)
    return {request.gpus, request.gpus};
  return {request.gpus_min > 0 ? std::min(request.gpus_min, request.gpus) : request.gpus,
          std::max(request.gpus_max, request.gpus)};
}

}  // namespace berth
