// The catalogue of device types: what one device has, how fast it is beside a V100, what it draws
// and costs. A new accelerator is a row here or in the cluster file, never code. Figures are
// nominal: memory of the common variant, board power limit, idle power as drivers report it; speed
// is a rough relative figure for mixed training and is only used where a job has no profile; price
// is what public clouds list for one device and hour on demand, its part of the server included.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth {

enum class DeviceKind : std::uint8_t { Gpu, Fpga, Asic, Tpu, Npu };
inline constexpr std::array<DeviceKind, 5> kAllDeviceKinds{
    DeviceKind::Gpu, DeviceKind::Fpga, DeviceKind::Asic, DeviceKind::Tpu, DeviceKind::Npu};

struct DeviceType {
  std::string name;
  std::int64_t memory_mib = 0;
  double speed = 1.0;  // relative to a V100
  double idle_watts = 50;
  double busy_watts = 300;
  double price_per_hour = 0;  // in dollars; 0 = no public figure: see price_of()
  DeviceKind kind = DeviceKind::Gpu;
  std::int32_t slots = 8;  // equal parts it can be shared in; 1 = never shared
};

[[nodiscard]] std::span<const DeviceType> built_in_devices();
/// The row of that name, whatever its case; nothing if unknown.
[[nodiscard]] std::optional<DeviceType> find_device(std::string_view name);

/// Dollars per hour: the device's own figure, or else a V100's times its speed.
[[nodiscard]] double price_of(const DeviceType& device) noexcept;

[[nodiscard]] std::string_view to_string(DeviceKind kind) noexcept;
[[nodiscard]] std::optional<DeviceKind> device_kind_from(std::string_view text) noexcept;

}  // namespace berth
