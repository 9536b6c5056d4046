#include "model/catalogue.h"

#include <algorithm>
#include <cctype>

namespace berth {

std::span<const DeviceType> built_in_devices() {
  // Busy power: 0.9 x board limit, except A100, whose production mean when busy is about 400 W.
  // Price: about the on-demand prices of 2020-2024, recalled and not looked up; export versions
  // (a800, h800) as the device they stand for. New rows go to the end: lists are shown in this
  // order.
  static const std::array<DeviceType, 27> kDevices{{
      {"gpu", 16384, 1.0, 42, 270, 3.06},
      {"k80", 12288, 0.17, 29, 134, 0.9},
      {"p100", 16384, 0.60, 28, 225, 1.46},
      {"v100", 16384, 1.0, 42, 270, 3.06},
      {"v100m32", 32768, 1.0, 42, 270, 3.9},
      {"t4", 15360, 0.35, 9, 63, 0.526},
      {"2080ti", 11264, 0.65, 25, 225},
      {"rtx6000", 24576, 0.75, 25, 234, 1.5},
      {"a10", 24576, 1.0, 20, 135, 1.006},
      {"a40", 49152, 1.1, 30, 270, 1.28},
      {"a100", 40960, 2.0, 60, 390, 4.1},
      {"a800", 81920, 2.0, 60, 390, 5.12},
      {"h100", 81920, 3.5, 70, 630, 12.29},
      {"h800", 81920, 3.3, 70, 630, 12.29},
      {"mi250", 65536, 1.8, 90, 500},
      {"a100-80g", 81920, 2.1, 60, 390, 5.12},
      {"l4", 24576, 0.6, 16, 65, 0.805},
      {"l40s", 49152, 1.7, 35, 315, 1.861},
      {"mi250x", 131072, 2.2, 90, 504},
      {"mi300x", 196608, 4.0, 140, 675, 6},
      {"3090", 24576, 0.95, 25, 315, 0.46},
      {"4090", 24576, 1.7, 20, 405, 0.69},
      {"tpu-v3", 32768, 1.2, 120, 236, 2, DeviceKind::Tpu, 1},
      {"tpu-v4", 32768, 2.2, 90, 173, 3.22, DeviceKind::Tpu, 1},
      {"ascend910", 32768, 2.0, 70, 279, 0, DeviceKind::Npu, 8},
      {"gaudi2", 98304, 2.0, 100, 540, 1.3, DeviceKind::Asic, 1},
      {"alveo-u250", 65536, 0.1, 30, 203, 1.65, DeviceKind::Fpga, 4},
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

double price_of(const DeviceType& device) noexcept {
  // A device without a public price costs what its speed is worth in V100s.
  constexpr double kV100 = 3.06;
  return device.price_per_hour > 0 ? device.price_per_hour : kV100 * device.speed;
}

std::string_view to_string(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::Gpu: return "gpu";
    case DeviceKind::Fpga: return "fpga";
    case DeviceKind::Asic: return "asic";
    case DeviceKind::Tpu: return "tpu";
    case DeviceKind::Npu: break;
  }
  return "npu";
}

std::optional<DeviceKind> device_kind_from(std::string_view text) noexcept {
  for (const DeviceKind kind : kAllDeviceKinds) {
    if (text == to_string(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace berth
