// From how fast a job runs on how many GPUs to the demand a schedule is sought for. Jobs of one
// size are one worker that takes all their GPUs; jobs whose speed is proportional to their GPUs are
// counted in GPU-slots; for all others the work is cut into equal units, about `units` of them and
// at least four to a slot at the largest size.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/common/elastic.h"
#include "policies/common/parameter_servers.h"
#include "policies/oasis/cheapest.h"

namespace berth::oasis {

struct Speed {
  ElasticRange range;
  std::vector<double> per_slot;  // work done in a slot, by number of GPUs above the least; rising

  [[nodiscard]] double at_most() const noexcept { return per_slot.back(); }
  /// Slots at the largest size.
  [[nodiscard]] double shortest(double work) const noexcept { return work / at_most(); }
};

[[nodiscard]] Demand demand_for(double work, const Speed& speed, const ParameterServers& servers,
                                std::int64_t units);

}  // namespace berth::oasis
