// What a job leaves outside of its processes is cleaned up by a command of its launch order, such as
// `podman rm`: run as the job's user when all is over, however it ended.
#pragma once

#include <string>
#include <vector>

#include "exec/order_file.h"

namespace berth {

/// What the command needs of the job's environment: "PATH=…".
[[nodiscard]] std::vector<std::string> cleanup_environment(const LaunchOrder& order);
/// Waits for it, but not for ever.
void run_cleanup(const LaunchOrder& order, const std::vector<std::string>& environment);

}  // namespace berth
