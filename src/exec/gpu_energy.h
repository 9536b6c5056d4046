// What the GPUs of this machine use, as the NVIDIA driver counts it: energy since the driver was
// loaded, or, of devices that do not count, their draw at each look. And how busy they are.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth {

class GpuEnergy {
 public:
  /// So much time between two looks at a draw, in seconds, and the average says nothing any more.
  static constexpr double kMostBetweenLooks = 10;

  /// Without such a library (or driver), or without a name, there is nothing to read.
  explicit GpuEnergy(const std::string& library);
  ~GpuEnergy();
  GpuEnergy(GpuEnergy&&) noexcept;
  GpuEnergy& operator=(GpuEnergy&&) noexcept;

  /// How many can be read; 0: none.
  [[nodiscard]] std::size_t size() const noexcept { return devices_.size(); }
  /// Some tell only their draw: somebody has to look every second or so.
  [[nodiscard]] bool needs_looks() const noexcept;
  /// Joules of each since the last call. Nothing of one that did not answer, whose counter went
  /// back, or whose draw was not looked at for too long.
  [[nodiscard]] std::vector<std::optional<double>> joules(double now_seconds);
  /// The part of the last moments in which each was busy, 0 to 1.
  [[nodiscard]] std::vector<std::optional<double>> busy() const;

 private:
  struct Driver;
  struct Device {
    void* handle = nullptr;
    bool counts = false;  // energy; otherwise it tells its draw
    std::optional<double> last{};
    double last_at = 0;
  };
  [[nodiscard]] std::optional<double> read(const Device& device) const;
  std::unique_ptr<Driver> driver_;
  std::vector<Device> devices_;
};

}  // namespace berth
