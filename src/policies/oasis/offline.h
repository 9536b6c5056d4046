// The most utility that any schedule could have reached, knowing all jobs beforehand: the offline
// integer program on one server. For comparing, not for deciding: small instances only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace berth::oasis {

struct OfflineJob {
  std::int64_t arrival = 0;   // slot
  std::int64_t work = 1;      // worker-slots
  std::int64_t workers = 1;   // at once, at most
  std::vector<double> worth;  // by finish slot
};

[[nodiscard]] Result<double> offline_optimum(std::int64_t gpus, std::int64_t slots,
                                             const std::vector<OfflineJob>& jobs);

}  // namespace berth::oasis
