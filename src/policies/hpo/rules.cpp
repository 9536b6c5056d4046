#include "policies/hpo/rules.h"

#include <algorithm>

namespace berth::hpo {

namespace {

std::vector<double> whole_gpus(std::span<const double> work, std::int32_t gpus) {
  std::vector<double> shares(work.size(), 1);
  for (auto left = gpus - static_cast<std::int32_t>(work.size()); left > 0; --left) {
    std::size_t neediest = 0;
    for (std::size_t i = 1; i < work.size(); ++i) {
      if (work[i] / shares[i] > work[neediest] / shares[neediest]) neediest = i;
    }
    ++shares[neediest];
  }
  return shares;
}

/// Parts by work; who would have more than a GPU has one, and the others share what is left.
std::vector<double> parts_of_gpus(std::span<const double> work, std::int32_t gpus) {
  std::vector<double> shares(work.size(), 0);
  for (bool capped = true; capped;) {
    capped = false;
    double left = gpus;
    double sum = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
      const bool has_one = shares[i] >= 1;
      left -= has_one ? 1 : 0;
      sum += has_one ? 0 : work[i];
    }
    for (std::size_t i = 0; i < work.size(); ++i) {
      if (shares[i] >= 1) continue;
      shares[i] = left * work[i] / sum;
      capped = capped || shares[i] > 1;
    }
    for (double& share : shares) share = std::min(share, 1.0);
  }
  return shares;
}

}  // namespace

std::vector<double> trial_shares(std::span<const double> work, std::int32_t gpus) {
  if (work.empty()) return {};
  return static_cast<std::int64_t>(work.size()) <= gpus ? whole_gpus(work, gpus)
                                                        : parts_of_gpus(work, gpus);
}

}  // namespace berth::hpo
