// Placements that understand requests for a fraction of a device: fragmentation gradient descent
// and the rules it is compared with (fgd.h, fraction_rules.h), on the cluster of a run.
//   fgd                 where what the typical workload cannot use grows least
//   fraction-best-fit   least weighted rest of cores and devices
//   fraction-random     any node and device that hold it
//   dot-product, gpu-packing, gpu-clustering   as in fraction_rules.h
//
// The typical workload is what was placed before: every tenth of growth of that history the most
// frequent shapes are counted again. A gang that no single node holds takes the fewest nodes. All
// acceptable device types are weighed together. Of the state of a run only nodes that changed since
// the last call are looked at; of another one all: O(devices of the cluster).
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/placement.h"

namespace berth {

/// Nothing if the name is none of these.
[[nodiscard]] std::unique_ptr<Placement> make_fraction_placement(std::string_view name);

}  // namespace berth
