// The rows of the registry for Gavel's policies.
#pragma once

#include <vector>

#include "policies/registry.h"

namespace berth {

/// gavel-las, gavel-ftf, gavel-makespan, gavel-cost, gavel-slo, gavel-hierarchical, gavel-fifo,
/// gavel-sjf, gavel-throughput.
[[nodiscard]] std::vector<PolicyEntry> gavel_entries();

}  // namespace berth
