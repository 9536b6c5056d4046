// What the NVIDIA driver says of the GPUs of this machine. The library is opened at run time with
// prototypes of our own: Berth builds and runs without it, and a machine without a driver simply
// has no such devices. Functions that an old driver lacks leave their facts out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/cluster.h"

namespace berth {

struct GpuFacts {
  std::string name;  // as the driver spells it
  std::int64_t memory_mib = 0;
  double limit_watts = 0;  // 0 = not told
};

/// How close two devices of a machine are without NVLink.
enum class PciDistance : std::uint8_t { Switch, Socket, Machine };

struct GpuReport {
  std::vector<GpuFacts> gpus;
  std::vector<PciDistance> distances;  // gpus x gpus
  NvlinkMatrix nvlink;                 // direct links; all zero where there are none
  bool has_nvswitch = false;           // every device reaches every other over switches
};

/// Nothing if there is no such library (or driver); an error if there is one that fails.
[[nodiscard]] Result<std::optional<GpuReport>> ask_nvml(const std::string& library);

}  // namespace berth
