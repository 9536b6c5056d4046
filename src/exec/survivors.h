// What a dead shim left behind. A job whose shim was killed runs on without anybody who would stop
// it or record its end; before its devices are given to others it must be gone.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "exec/cgroup.h"
#include "exec/claim.h"

namespace berth {

/// Kills every process that carries the claim's path in its environment or sits in the groups, and
/// returns when none is left and the guard has ended the others. True: there was one. An error
/// names one that has not gone within two seconds.
[[nodiscard]] Result<bool> end_survivors(const std::string& path, const std::optional<Claim>& claim,
                                         const AttemptCgroups& groups);

}  // namespace berth
