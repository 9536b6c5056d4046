// How far apart the devices of a gang are: the kind of their lowest common ancestor in the topology
// tree. A level stands for the link that an all-reduce over the gang is bound by.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace berth {

enum class Level : std::uint8_t {
  Device,     // one device
  Nvlink,     // one NVLink island
  Pcie,       // one PCIe switch
  Server,     // one server (socket interconnect); sockets count as this too
  Rack,       // one rack
  CrossRack,  // anything above
};
inline constexpr std::size_t kLevels = 6;
inline constexpr std::array<Level, kLevels> kAllLevels{
    Level::Device, Level::Nvlink, Level::Pcie, Level::Server, Level::Rack, Level::CrossRack};

[[nodiscard]] constexpr std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::Device: return "device";
    case Level::Nvlink: return "nvlink";
    case Level::Pcie: return "pcie";
    case Level::Server: return "server";
    case Level::Rack: return "rack";
    case Level::CrossRack: break;
  }
  return "cross-rack";
}

/// A link between neighbours: bytes per second, seconds.
struct Link {
  double bandwidth = 0;
  double latency = 0;
  friend bool operator==(const Link&, const Link&) = default;
};

}  // namespace berth
