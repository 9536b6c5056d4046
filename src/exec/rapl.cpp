#include "exec/rapl.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

namespace berth {

namespace {

std::optional<std::uint64_t> read_number(const std::string& file) {
  std::ifstream in{file};
  std::uint64_t number = 0;
  if (!(in >> number)) return std::nullopt;
  return number;
}

/// "intel-rapl:0" is a package; "intel-rapl:0:1" is a part of it and counted there already.
bool is_package(const std::string& name) {
  const std::size_t colon = name.find(':');
  return name.starts_with("intel-rapl:") && name.find(':', colon + 1) == std::string::npos;
}

}  // namespace

Rapl::Rapl(const std::string& root) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    if (!is_package(entry.path().filename().string())) continue;
    const std::string folder = entry.path().string();
    const auto now = read_number(folder + "/energy_uj");
    const auto range = read_number(folder + "/max_energy_range_uj");
    if (now && range && *range > 0)
      packages_.push_back({.file = folder + "/energy_uj", .range = *range, .last = *now});
  }
}

std::optional<double> Rapl::joules() {
  double sum = 0;
  bool is_good = is_there();
  for (Counter& counter : packages_) {
    const auto now = read_number(counter.file);
    if (!now || *now > counter.range) {
      is_good = false;
      continue;
    }
    const std::uint64_t used =
        *now >= counter.last ? *now - counter.last : counter.range - counter.last + *now;
    counter.last = *now;
    sum += static_cast<double>(used) * 1e-6;
  }
  if (!is_good) return std::nullopt;
  return sum;
}

double Rapl::safe_seconds() const noexcept {
  double safe = std::numeric_limits<double>::infinity();
  for (const Counter& counter : packages_)
    safe = std::min(safe, static_cast<double>(counter.range) * 1e-6 / 1000);
  return safe;
}

}  // namespace berth
