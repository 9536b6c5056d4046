// The best rings through the NVLink mesh of one server. An all-reduce is as fast as the slowest
// link of its ring, so of all subsets of k free devices we want the one whose best ring has the
// fastest slowest link. For servers of at most eight devices that is worked out once for every free
// mask (256 masks x 8 sizes) and is a table look-up from then on. Immutable.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/cluster.h"

namespace berth {

class NvlinkRings {
 public:
  static constexpr std::int32_t kMaxDevices = 8;

  /// `bus` is what a pair without a direct link gets: the bandwidth of the next level up, as a
  /// devices x devices table.
  NvlinkRings(const NvlinkMatrix& matrix, const std::vector<double>& bus);

  /// The slowest link of the best ring through these devices; of one device: none is slow.
  [[nodiscard]] double bandwidth(std::uint64_t devices) const noexcept {
    return subsets_[devices].bandwidth;
  }
  /// Is there a ring through them over direct links only?
  [[nodiscard]] bool is_direct(std::uint64_t devices) const noexcept {
    return subsets_[devices].direct;
  }
  /// The subset of `count` of the free devices with the fastest ring; equals go to the lower
  /// device numbers. There must be so many.
  [[nodiscard]] std::uint64_t best(std::uint64_t free, std::int32_t count) const noexcept {
    return best_[free][static_cast<std::size_t>(count)];
  }

 private:
  struct Subset {
    double bandwidth = 0;
    bool direct = false;
  };
  std::vector<Subset> subsets_;                                  // by mask
  std::vector<std::array<std::uint8_t, kMaxDevices + 1>> best_;  // by free mask, then count
};

}  // namespace berth
