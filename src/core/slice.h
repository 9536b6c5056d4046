// Some devices of one node, as a bit mask: what a placement chooses and a job holds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/id.h"

namespace berth {

struct Slice {
  NodeId node;
  std::int32_t gpus = 0;  // the number of bits in `devices`
  std::uint64_t devices = 0;
  friend bool operator==(const Slice&, const Slice&) = default;

  /// What cores and memory are counted by: one worker per device. A job without a device is one
  /// worker as well.
  [[nodiscard]] std::int64_t workers() const noexcept { return std::max(1, gpus); }
};

}  // namespace berth
