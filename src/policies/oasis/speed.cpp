#include "policies/oasis/speed.h"

#include <algorithm>
#include <cmath>

namespace berth::oasis {

namespace {

constexpr double kSameSpeed = 1e-9;  // relative

std::int64_t rounded_up(double exact) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(exact * (1 - kSameSpeed))));
}

bool is_proportional(const Speed& speed) {
  if (speed.range.least != 1) return false;
  for (std::size_t i = 0; i < speed.per_slot.size(); ++i) {
    const double expected = speed.per_slot[0] * static_cast<double>(i + 1);
    if (std::abs(speed.per_slot[i] - expected) > kSameSpeed * expected) return false;
  }
  return true;
}

/// The fewest GPUs that do d of `parts` parts of a full slot, for every d.
std::vector<std::int64_t> workers_for_parts(const Speed& speed, std::int64_t parts) {
  std::vector<std::int64_t> workers{0};
  std::size_t i = 0;
  for (std::int64_t d = 1; d <= parts; ++d) {
    const double wanted = speed.at_most() * static_cast<double>(d) / static_cast<double>(parts);
    while (i + 1 < speed.per_slot.size() && speed.per_slot[i] < wanted * (1 - kSameSpeed)) ++i;
    workers.push_back(speed.range.least + static_cast<std::int64_t>(i));
  }
  return workers;
}

}  // namespace

Demand demand_for(double work, const Speed& speed, const ParameterServers& servers,
                  std::int64_t units) {
  Demand demand;
  demand.worker = {1};
  if (servers.any()) {
    demand.helper = {servers.cores};
    demand.workers_per_helper = servers.workers_each;
  }
  if (speed.range.is_fixed() && !servers.any()) {
    demand.worker = {speed.range.most};
    demand.units = rounded_up(speed.shortest(work));
    demand.workers_for = {0, 1};
    return demand;
  }
  std::int64_t parts = speed.range.most;
  const bool proportional = is_proportional(speed);
  if (!proportional || servers.any()) {
    const double wanted = std::min(1e6, static_cast<double>(units) / speed.shortest(work));
    parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(wanted)),
                                     std::min<std::int64_t>(4, parts), parts);
  }
  demand.units = rounded_up(speed.shortest(work) * static_cast<double>(parts));
  demand.workers_for = workers_for_parts(speed, parts);
  return demand;
}

}  // namespace berth::oasis
