// The directory of a job's steps (docs/adr/0009-steps.md), as the shim sees it: it makes it, and
// looks whether a step runs.
#pragma once

#include <string>

#include "base/result.h"
#include "exec/host.h"

namespace berth {

/// For the order's user alone, with what the job holds on record.
[[nodiscard]] Result<void> make_steps_directory(const std::string& path, const LaunchOrder& order);
/// Somebody holds the lock of a step there.
[[nodiscard]] bool is_step_running(const std::string& path);

}  // namespace berth
