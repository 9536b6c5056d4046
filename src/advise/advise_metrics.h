// Measurements of a Slurm that is looked at, for Prometheus (docs/metrics.md).
#pragma once

#include <cstdint>
#include <string>

#include "advise/poller.h"
#include "wire/views.h"

namespace berth::advise {

struct AdviseState {
  const Sight& sight;
  const ClusterView& cluster;
  const PollFigures& figures;
  std::int64_t wall = 0;  // Unix microseconds
};
[[nodiscard]] std::string advise_metrics(const AdviseState& state);

}  // namespace berth::advise
