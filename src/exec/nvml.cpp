#include "exec/nvml.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "exec/nvml_library.h"

namespace berth {

namespace {

// The C interface of the library, as far as it is used here.
using Device = NvmlLibrary::Device;
constexpr unsigned kMaxLinks = 18;

struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};

PciDistance distance_from(unsigned level) noexcept {
  constexpr unsigned kSeveralSwitches = 20;
  constexpr unsigned kSameNumaNode = 40;
  if (level <= kSeveralSwitches) return PciDistance::Switch;
  return level <= kSameNumaNode ? PciDistance::Socket : PciDistance::Machine;
}

/// Bytes per second and direction of one link.
double link_bandwidth(unsigned version) noexcept { return version <= 1 ? 20e9 : 25e9; }

class Inquiry {
 public:
  explicit Inquiry(const NvmlLibrary& library) : library_(library) {}

  Result<GpuReport> report() {
    unsigned count = 0;
    if (!library_.call("nvmlDeviceGetCount_v2", &count))
      return fail("the NVIDIA driver does not say how many GPUs there are (try nvidia-smi)");
    GpuReport report;
    for (unsigned i = 0; i < count && i < static_cast<unsigned>(kMaxGpusPerNode); ++i) {
      Device device = nullptr;
      if (!library_.call("nvmlDeviceGetHandleByIndex_v2", i, &device))
        return fail(fmt::format("the NVIDIA driver does not open GPU {} (try nvidia-smi)", i));
      devices_.push_back(device);
      report.gpus.push_back(facts_of(device));
    }
    add_distances(report);
    add_links(report);
    return report;
  }

 private:
  [[nodiscard]] GpuFacts facts_of(Device device) const {
    GpuFacts facts;
    std::array<char, 96> name{};
    if (library_.call("nvmlDeviceGetName", device, name.data(), unsigned{96}))
      facts.name = name.data();
    Memory memory{};
    if (library_.call("nvmlDeviceGetMemoryInfo", device, &memory))
      facts.memory_mib = static_cast<std::int64_t>(memory.total >> 20U);
    unsigned milliwatts = 0;
    if (library_.call("nvmlDeviceGetPowerManagementLimit", device, &milliwatts))
      facts.limit_watts = milliwatts / 1000.0;
    return facts;
  }

  [[nodiscard]] std::string bus_id(const PciInfo& pci) const { return pci.bus_id.data(); }

  void add_distances(GpuReport& report) const {
    for (const Device a : devices_) {
      for (const Device b : devices_) {
        unsigned level = 50;
        const bool known =
            a != b && library_.call("nvmlDeviceGetTopologyCommonAncestor", a, b, &level);
        report.distances.push_back(a == b  ? PciDistance::Switch
                                   : known ? distance_from(level)
                                           : PciDistance::Machine);
      }
    }
  }

  void add_links(GpuReport& report) const {
    const std::size_t size = devices_.size();
    report.nvlink = {static_cast<std::int32_t>(size), std::vector<double>(size * size)};
    std::vector<std::string> buses;
    for (const Device device : devices_) {
      PciInfo pci{};
      const bool known = library_.call("nvmlDeviceGetPciInfo_v3", device, &pci);
      buses.push_back(known ? bus_id(pci) : "");
    }
    std::size_t switched = 0;  // devices with a link that ends at no other device
    for (std::size_t i = 0; i < size; ++i) {
      bool reaches_switch = false;
      for (unsigned link = 0; link < kMaxLinks; ++link) {
        unsigned active = 0;
        PciInfo remote{};
        if (!library_.call("nvmlDeviceGetNvLinkState", devices_[i], link, &active) || active == 0)
          continue;
        if (!library_.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", devices_[i], link, &remote))
          continue;
        unsigned version = 2;
        static_cast<void>(library_.call("nvmlDeviceGetNvLinkVersion", devices_[i], link, &version));
        const auto other = std::find(buses.begin(), buses.end(), bus_id(remote));
        if (other == buses.end())
          reaches_switch = true;
        else
          report.nvlink.bandwidth[i * size + static_cast<std::size_t>(other - buses.begin())] +=
              link_bandwidth(version);
      }
      if (reaches_switch) ++switched;
    }
    report.has_nvswitch = size > 1 && switched == size;
  }

  const NvmlLibrary& library_;
  std::vector<Device> devices_;
};

}  // namespace

Result<std::optional<GpuReport>> ask_nvml(const std::string& name) {
  const NvmlLibrary library(name);
  if (!library.is_open() || !library.call("nvmlInit_v2")) return std::nullopt;
  auto report = Inquiry(library).report();
  static_cast<void>(library.call("nvmlShutdown"));
  if (!report) return tl::unexpected<Error>(report.error());
  return std::optional<GpuReport>(std::move(*report));
}

}  // namespace berth
