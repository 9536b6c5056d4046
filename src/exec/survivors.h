// What a dead shim left behind. A job whose shim was killed runs on without anybody who would stop
// it or record its end; before its devices are given to others it must be gone.
#pragma once

#include <string>

#include "base/result.h"
#include "exec/cgroup.h"

namespace berth {

/// Kills every process that carries the claim's path in its environment or sits in the groups, and
/// returns when none is left. An error names one that would not go.
[[nodiscard]] Result<void> end_survivors(const std::string& claim, const AttemptCgroups& groups);

}  // namespace berth
