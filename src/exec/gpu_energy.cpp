#include "exec/gpu_energy.h"

#include <algorithm>
#include <utility>

#include "exec/nvml_library.h"
#include "model/cluster.h"

namespace berth {

struct GpuEnergy::Driver {
  explicit Driver(const std::string& name) : library(name) {
    is_ready = library.is_open() && library.call("nvmlInit_v2");
  }
  ~Driver() {
    if (is_ready) static_cast<void>(library.call("nvmlShutdown"));
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] std::optional<double> counted(void* device) const {
    unsigned long long millijoules = 0;
    if (!library.call("nvmlDeviceGetTotalEnergyConsumption", device, &millijoules))
      return std::nullopt;
    return static_cast<double>(millijoules) * 1e-3;
  }
  [[nodiscard]] std::optional<double> drawn(void* device) const {
    unsigned milliwatts = 0;
    if (!library.call("nvmlDeviceGetPowerUsage", device, &milliwatts)) return std::nullopt;
    return milliwatts * 1e-3;
  }

  NvmlLibrary library;
  bool is_ready = false;
};

GpuEnergy::GpuEnergy(const std::string& library) {
  if (library.empty()) return;
  driver_ = std::make_unique<Driver>(library);
  unsigned count = 0;
  if (!driver_->is_ready || !driver_->library.call("nvmlDeviceGetCount_v2", &count)) return;
  for (unsigned i = 0; i < count && i < static_cast<unsigned>(kMaxGpusPerNode); ++i) {
    Device device;
    if (!driver_->library.call("nvmlDeviceGetHandleByIndex_v2", i, &device.handle)) break;
    device.counts = driver_->counted(device.handle).has_value();
    if (!read(device)) break;
    devices_.push_back(device);
  }
  // Some without the others would be taken for others: a device is known by its place.
  if (devices_.size() != count) devices_.clear();
}

GpuEnergy::~GpuEnergy() = default;
GpuEnergy::GpuEnergy(GpuEnergy&&) noexcept = default;
GpuEnergy& GpuEnergy::operator=(GpuEnergy&&) noexcept = default;

bool GpuEnergy::needs_looks() const noexcept {
  return std::ranges::any_of(devices_, [](const Device& device) { return !device.counts; });
}

std::optional<double> GpuEnergy::read(const Device& device) const {
  return device.counts ? driver_->counted(device.handle) : driver_->drawn(device.handle);
}

std::vector<std::optional<double>> GpuEnergy::joules(double now_seconds) {
  std::vector<std::optional<double>> used;
  for (Device& device : devices_) {
    const auto now = read(device);
    const auto before = std::exchange(device.last, now);
    const double seconds = now_seconds - std::exchange(device.last_at, now_seconds);
    std::optional<double>& joules = used.emplace_back();
    if (!now || !before || seconds < 0) continue;
    if (device.counts) {
      if (*now >= *before) joules = *now - *before;
    } else if (seconds <= kMostBetweenLooks) {
      joules = (*before + *now) / 2 * seconds;
    }
  }
  return used;
}

std::vector<std::optional<double>> GpuEnergy::busy() const {
  struct {
    unsigned gpu = 0, memory = 0;
  } percent;
  std::vector<std::optional<double>> parts;
  for (const Device& device : devices_) {
    const bool told =
        driver_->library.call("nvmlDeviceGetUtilizationRates", device.handle, &percent);
    parts.push_back(told ? std::optional(percent.gpu * 0.01) : std::nullopt);
  }
  return parts;
}

}  // namespace berth
