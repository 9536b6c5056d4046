#include "model/catalogue.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace berth {

std::span<const DeviceType> built_in_devices() {
  // Busy power: 0.9 x board limit, except A100, whose production mean when busy is about 400 W.
  static const std::array<DeviceType, 15> kDevices{{
      {"gpu", 16384, 1.0, 42, 270},
      {"k80", 12288, 0.17, 29, 134},
      {"p100", 16384, 0.60, 28, 225},
      {"v100", 16384, 1.0, 42, 270},
      {"v100m32", 32768, 1.0, 42, 270},
      {"t4", 15360, 0.35, 9, 63},
      {"2080ti", 11264, 0.65, 25, 225},
      {"rtx6000", 24576, 0.75, 25, 234},
      {"a10", 24576, 1.0, 20, 135},
      {"a40", 49152, 1.1, 30, 270},
      {"a100", 40960, 2.0, 60, 390},
      {"a800", 81920, 2.0, 60, 390},
      {"h100", 81920, 3.5, 70, 630},
      {"h800", 81920, 3.3, 70, 630},
      {"mi250", 65536, 1.8, 90, 500},
  }};
  return kDevices;
}

std::optional<DeviceType> find_device(std::string_view name) {
  const auto same = [&](const DeviceType& device) {
    return std::ranges::equal(device.name, name, [](char a, char b) {
      return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
    });
  };
  const auto devices = built_in_devices();
  const auto found = std::ranges::find_if(devices, same);
  if (found == devices.end()) return std::nullopt;
  return *found;
}

}  // namespace berth
