// Rows under `devices:` extend or change the built-in catalogue. Pools are made when a group first
// names a type, in the order of the file, so that pool ids do not depend on the catalogue.

#include "model/device_rows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/suggest.h"

namespace berth {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

void DeviceRows::read(const YAML::Node& rows) {
  if (!rows.IsDefined()) return;
  if (!rows.IsSequence())
    return yaml_.wrong(rows.Mark(), "devices must be a list (start each device with '- ')");
  for (const YAML::Node& row : rows) {
    if (row.IsMap())
      read_device(row);
    else
      yaml_.wrong(row.Mark(),
                  "a device is a mapping, as in {name: l40, memory_gb: 48, speed: 1.6}");
  }
}

// Names are kept in lower case; case does not matter in a file.
void DeviceRows::read_device(const YAML::Node& row) {
  static const std::array<std::string, 8> kKeys{
      "name", "kind", "memory_gb", "speed", "slots", "idle_watts", "busy_watts", "price_per_hour"};
  yaml_.check_keys(row, kKeys, "a device");
  const auto type = yaml_.name(row, "name");
  if (!type && !yaml_.child(row, "name").IsDefined())
    yaml_.wrong(row.Mark(), "a device needs a name");
  const auto built_in = type ? find_device(*type) : std::nullopt;
  // A row that names a built-in type starts from it and changes only the keys it gives.
  DeviceType device = built_in.value_or(DeviceType{});
  if (const auto memory = yaml_.number(row, "memory_gb", {1, 10'000}))
    device.memory_mib = std::llround(*memory * 1024);
  else if (!built_in && !yaml_.child(row, "memory_gb").IsDefined())
    yaml_.wrong(row.Mark(), "a device that is not built in needs memory_gb");
  device.speed = yaml_.number(row, "speed", {0.001, 1000}).value_or(device.speed);
  device.slots = yaml_.whole(row, "slots", {1, 1000}).value_or(device.slots);
  device.idle_watts = yaml_.number(row, "idle_watts", {0, 100'000}).value_or(device.idle_watts);
  device.busy_watts = yaml_.number(row, "busy_watts", {0, 100'000}).value_or(device.busy_watts);
  device.price_per_hour =
      yaml_.number(row, "price_per_hour", {0, 10'000}).value_or(device.price_per_hour);
  if (device.busy_watts < device.idle_watts)
    yaml_.wrong(row.Mark(), "busy_watts must be at least idle_watts");
  read_kind(row, device);
  if (!type) return;
  device.name = lower(*type);
  if (std::ranges::find(rows_, device.name, &DeviceType::name) != rows_.end()) {
    yaml_.wrong(row.Mark(), fmt::format("device '{}' is described twice (keep one)", device.name));
  }
  rows_.push_back(device);
}

void DeviceRows::read_kind(const YAML::Node& row, DeviceType& device) {
  const auto word = yaml_.text(row, "kind");
  if (!word) return;
  if (const auto kind = device_kind_from(lower(*word)))
    device.kind = *kind;
  else
    yaml_.wrong(yaml_.child(row, "kind").Mark(),
                fmt::format("kind must be gpu, fpga, asic, tpu or npu, got '{}'", *word));
}

// One pool per type: a type with two sizes of memory would make "a GPU of this type" ambiguous.
PoolId DeviceRows::pool_of(const YAML::Node& group, std::vector<DeviceType>& pools) {
  const std::string type = lower(yaml_.name(group, "type").value_or("gpu"));
  // 0 = not said
  const std::int64_t memory_mib =
      std::llround(yaml_.number(group, "device_memory_gb", {1, 10'000}).value_or(0) * 1024);
  for (std::uint32_t i = 0; i < pools.size(); ++i) {
    if (pools[i].name != type) continue;
    if (memory_mib > 0 && memory_mib != pools[i].memory_mib) {
      yaml_.wrong(
          yaml_.child(group, "device_memory_gb").Mark(),
          fmt::format("'{}' has {} GB elsewhere in this file (give the other kind its own name "
                      "under devices)",
                      type, static_cast<double>(pools[i].memory_mib) / 1024));
    }
    return PoolId{i};
  }
  DeviceType device;
  if (const auto own = std::ranges::find(rows_, type, &DeviceType::name); own != rows_.end()) {
    device = *own;
  } else if (const auto built_in = find_device(type)) {
    device = *built_in;
  } else {
    std::vector<std::string> known;
    for (const DeviceType& one : rows_) known.push_back(one.name);
    for (const DeviceType& one : built_in_devices()) known.push_back(one.name);
    yaml_.wrong(yaml_.child(group, "type").Mark(),
                fmt::format("no device type is called '{}'{}; a new one needs a row under devices",
                            type, suggestion(type, known)));
    return PoolId{};
  }
  if (memory_mib > 0) device.memory_mib = memory_mib;
  pools.push_back(std::move(device));
  return PoolId{static_cast<std::uint32_t>(pools.size() - 1)};
}

}  // namespace berth
