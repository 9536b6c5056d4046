// How fast a running job gets on, as people are shown it.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace berth {

/// Where the rate of a job comes from.
enum class RateSource : std::uint8_t { Request, Belief, Reports };

/// What people are shown of a running job.
struct Pace {
  double rate = 1;
  double work_seconds = 0;   // done, of the whole
  double whole_seconds = 0;  // believed; 0 = nobody said
  Time at{};                 // from when on it goes on so
  RateSource source{};
  friend bool operator==(const Pace&, const Pace&) = default;
};

}  // namespace berth
