// Sessions beside the tasks of a job: processes of the job that do not count as tasks, started for
// whoever steps into it (docs/adr/0009-steps.md), and why a session has ended its job.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "base/result.h"
#include "exec/order_file.h"
#include "exec/run_dir.h"
#include "exec/shim/task.h"

namespace berth {

/// Starts the host of a session for the request of this number. `shim` is what the keeper has, with
/// the cores as they are now; the environment comes from the order's file.
[[nodiscard]] Result<pid_t> start_joined(const RunDir& directory, const ShimOrder& shim,
                                         TaskPlace place, std::int64_t request);

/// What the host of a job's own session has left in its directory, which is its user's: a short
/// text, or nothing.
[[nodiscard]] std::string session_reason(const std::string& steps);

}  // namespace berth
