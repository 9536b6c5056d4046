// A data set that is read again every epoch through a cache in host memory which keeps the same
// part of it all the time (MinIO): a sample is found there with probability min(1, m/D), the others
// come from storage.
#pragma once

#include <algorithm>
#include <limits>

namespace berth {

struct DataCache {
  double dataset_mib = 0;  // D; 0 = memory is no matter
  double sample_mib = 0;
  double storage_mib_per_second = 0;  // of one GPU

  [[nodiscard]] bool is_known() const noexcept { return dataset_mib > 0; }
  /// What the data set can be fetched at with m MiB of cache; infinite once it fits.
  [[nodiscard]] double samples_per_second(double memory_mib) const noexcept {
    const double missed = dataset_mib > 0 ? 1 - std::min(1.0, memory_mib / dataset_mib) : 0;
    const double seconds =
        storage_mib_per_second > 0 ? missed * sample_mib / storage_mib_per_second : 0;
    return seconds > 0 ? 1 / seconds : std::numeric_limits<double>::infinity();
  }
  friend bool operator==(const DataCache&, const DataCache&) = default;
};

}  // namespace berth
