// The machine's own clock: time since it was switched on, running through its sleep and untouched
// by whoever sets the wall clock. Two readings compare only within one boot, which has an id.
#pragma once

#include <cstdint>
#include <string>

namespace berth {

/// Microseconds since boot.
[[nodiscard]] std::int64_t boot_clock_micros() noexcept;
/// As the kernel writes it, 36 characters; empty where it does not say.
[[nodiscard]] std::string boot_id();

}  // namespace berth
