// What the two sources of the fake service share.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "daemon/service.h"

namespace berth::testing {

[[nodiscard]] inline std::int64_t now_wall() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

[[nodiscard]] inline tl::unexpected<Fault> fault(FaultKind kind, std::string message) {
  return tl::unexpected<Fault>(Fault{kind, {std::move(message)}});
}

}  // namespace berth::testing
