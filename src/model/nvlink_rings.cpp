#include "model/nvlink_rings.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace berth {

namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The largest possible smallest edge of a ring through each subset: a dynamic programme over
/// (devices passed, last device) from the lowest device of the subset.
std::vector<double> ring_bottlenecks(std::size_t devices, const std::vector<double>& edges) {
  const auto edge = [&](std::size_t a, std::size_t b) { return edges[a * devices + b]; };
  const std::size_t masks = std::size_t{1} << devices;
  std::vector<double> path(masks * devices, -1);  // best path from the lowest device to the last
  std::vector<double> ring(masks, 0);
  for (std::size_t mask = 1; mask < masks; ++mask) {
    const auto start = static_cast<std::size_t>(std::countr_zero(mask));
    if (std::has_single_bit(mask)) {
      path[mask * devices + start] = kNoLimit;
      ring[mask] = kNoLimit;
      continue;
    }
    for (std::size_t last = start + 1; last < devices; ++last) {
      if (((mask >> last) & 1U) == 0) continue;
      const std::size_t before = mask & ~(std::size_t{1} << last);
      double& best = path[mask * devices + last];
      for (std::size_t previous = start; previous < devices; ++previous) {
        const double so_far = path[before * devices + previous];
        if (((before >> previous) & 1U) == 0 || so_far < 0) continue;
        best = std::max(best, std::min(so_far, edge(previous, last)));
      }
      ring[mask] = std::max(ring[mask], std::min(best, edge(last, start)));
    }
  }
  return ring;
}

/// a before b when the lowest device in which they differ belongs to a.
bool lower_devices(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t differ = a ^ b;
  return (a & differ & (~differ + 1)) != 0;
}

}  // namespace

// All subsets of at most eight devices are worked out once; a placement only looks up.
NvlinkRings::NvlinkRings(const NvlinkMatrix& matrix, const std::vector<double>& bus) {
  BERTH_CHECK(matrix.devices <= kMaxDevices, "rings are worked out for small servers only");
  const auto devices = static_cast<std::size_t>(matrix.devices);
  std::vector<double> any(matrix.bandwidth);
  for (std::size_t i = 0; i < any.size(); ++i) {
    // A pair without NVLink talks over the bus: a ring may use both, at the speed of its slowest
    // link.
    if (any[i] <= 0) any[i] = bus[i];
  }
  const std::vector<double> over_any = ring_bottlenecks(devices, any);
  const std::vector<double> over_nvlink = ring_bottlenecks(devices, matrix.bandwidth);
  const std::size_t masks = over_any.size();
  for (std::size_t mask = 0; mask < masks; ++mask)
    subsets_.push_back({over_any[mask], over_nvlink[mask] > 0});

  best_.resize(masks);
  for (std::uint64_t free = 1; free < masks; ++free) {
    // All subsets of the free devices, by the usual descent. Eight devices: 3^8 steps, once per
    // kind of server.
    for (std::uint64_t part = free; part > 0; part = (part - 1) & free) {
      std::uint8_t& best = best_[free][static_cast<std::size_t>(std::popcount(part))];
      const double mine = subsets_[part].bandwidth;
      const double other = subsets_[best].bandwidth;
      if (best == 0 || mine > other || (mine == other && lower_devices(part, best)))
        best = static_cast<std::uint8_t>(part);
    }
  }
}

}  // namespace berth
