// What an executor can do to jobs and nodes beyond starting them, stopping them and starting them
// again, there or elsewhere, with as many devices or others. A plan
// contains nothing that its executor cannot do: it declines, or does the next best thing, and a
// policy that wants to know beforehand asks its view. So nothing is decided that would only be
// pretended.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace berth {

enum class Ability : std::uint16_t {
  Suspend = 1U << 0U,       // keep a job's state while others have its devices
  Share = 1U << 1U,         // several jobs on one device
  SubBatch = 1U << 2U,      // gradient accumulation
  Batch = 1U << 3U,         // another batch
  Cores = 1U << 4U,         // another number of cores
  Throttle = 1U << 5U,      // hold a job back
  DeviceMemory = 1U << 6U,  // limit its memory on the device
  HostMemory = 1U << 7U,    // limit its memory on the host
  Power = 1U << 8U,         // switch nodes on and off
};

inline constexpr std::array kAbilities{
    Ability::Suspend,  Ability::Share,        Ability::SubBatch,   Ability::Batch, Ability::Cores,
    Ability::Throttle, Ability::DeviceMemory, Ability::HostMemory, Ability::Power};

class Capabilities {
 public:
  constexpr Capabilities() = default;
  constexpr explicit(false) Capabilities(Ability one) : bits_(static_cast<std::uint16_t>(one)) {}
  [[nodiscard]] static constexpr Capabilities all() noexcept {
    Capabilities all;
    for (const Ability ability : kAbilities) all = all | ability;
    return all;
  }
  [[nodiscard]] constexpr bool has(Ability ability) const noexcept {
    return (bits_ & static_cast<std::uint16_t>(ability)) != 0;
  }
  [[nodiscard]] constexpr Capabilities without(Capabilities others) const noexcept {
    Capabilities rest = *this;
    rest.bits_ = static_cast<std::uint16_t>(rest.bits_ & ~others.bits_);
    return rest;
  }
  [[nodiscard]] friend constexpr Capabilities operator|(Capabilities a, Capabilities b) noexcept {
    a.bits_ = static_cast<std::uint16_t>(a.bits_ | b.bits_);
    return a;
  }
  friend constexpr bool operator==(Capabilities, Capabilities) = default;

 private:
  std::uint16_t bits_ = 0;
};
[[nodiscard]] constexpr Capabilities operator|(Ability a, Ability b) noexcept {
  return Capabilities{a} | Capabilities{b};
}

/// For people: "suspend", "sub-batch", …
[[nodiscard]] std::string_view to_string(Ability ability) noexcept;

}  // namespace berth
