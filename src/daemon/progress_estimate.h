// How far a running job is and how fast it proceeds, as the job's view shows it ("pace" in JSON).
// An estimate: the rate holds from `at` until the next one. Plain data; LiveRates makes it.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace berth {

/// Where the rate of a job comes from.
enum class RateSource : std::uint8_t { Request, Belief, Reports };

struct ProgressEstimate {
  double rate = 1;
  double work_seconds = 0;   // done so far
  double whole_seconds = 0;  // believed total; 0 = not known
  Time at{};                 // since when this rate holds
  RateSource source{};
  friend bool operator==(const ProgressEstimate&, const ProgressEstimate&) = default;
};

}  // namespace berth
