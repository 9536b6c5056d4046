// A driver library for tests: four V100 in a square of NVLinks (0-1, 1-3, 3-2, 2-0 with two links
// each), two sockets of two below one switch each. With FAKE_NVML_COUNT other numbers of GPUs, of
// which the fifth and later are T4 without links. FAKE_NVML_GPUS names a file that says what they
// use: "energy" or "draw" and a number for each, in joules or watts; "busy" and parts of a hundred.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

unsigned index_of(const void* device) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long>(device)) - 1;
}
void write_bus(unsigned index, PciInfo* pci) {
  std::snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", 16 + index);
}

/// What the file says of a device; below zero: nothing.
double said(const char* what, const void* device) {
  const char* path = std::getenv("FAKE_NVML_GPUS");
  std::FILE* file = path != nullptr ? std::fopen(path, "r") : nullptr;
  if (file == nullptr) return -1;
  char word[64] = "";
  double number = -1;
  bool is_it = false;
  for (unsigned at = 0; std::fscanf(file, "%63s", word) == 1;) {
    char* end = nullptr;
    const double value = std::strtod(word, &end);
    if (end == word) {
      is_it = std::strcmp(word, what) == 0;
      at = 0;
    } else if (is_it && at++ == index_of(device)) {
      number = value;
    }
  }
  std::fclose(file);
  return number;
}

}  // namespace

extern "C" {

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  const double joules = said("energy", device);
  *millijoules = static_cast<unsigned long long>(joules < 0 ? 0 : joules * 1000);
  return joules < 0 ? 3 : 0;  // not supported
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  const double watts = said("draw", device);
  *milliwatts = static_cast<unsigned>(watts < 0 ? 0 : watts * 1000);
  return watts < 0 ? 3 : 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* percents) {
  const double busy = said("busy", device);
  percents[0] = static_cast<unsigned>(busy < 0 ? 0 : busy);
  percents[1] = 0;
  return busy < 0 ? 3 : 0;
}

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  const char* wanted = std::getenv("FAKE_NVML_COUNT");
  *count = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 4;
  return *count == 99 ? 999 : 0;  // 99: the driver is broken
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<unsigned long>(index) + 1);
  return 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  std::snprintf(name, length, "%s", index_of(device) < 4 ? "Tesla V100-SXM2-32GB" : "Tesla T4");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->total = (index_of(device) < 4 ? 32768ULL : 15360ULL) << 20U;
  return 0;
}
int nvmlDeviceGetPowerManagementLimit(void*, unsigned* milliwatts) {
  *milliwatts = 250000;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, unsigned* level) {
  *level = index_of(a) / 2 == index_of(b) / 2 ? 10 : 50;
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
  write_bus(index_of(device), pci);
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  *active = index_of(device) < 4 && link < 4 ? 1 : 0;
  return 0;
}
int nvmlDeviceGetNvLinkVersion(void*, unsigned, unsigned* version) {
  *version = 2;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, PciInfo* pci) {
  static const unsigned kNeighbours[4][2] = {{1, 2}, {0, 3}, {0, 3}, {1, 2}};
  write_bus(kNeighbours[index_of(device)][link / 2], pci);
  return 0;
}
}
