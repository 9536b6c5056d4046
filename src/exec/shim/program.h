// The last step of a task: its program. Words are passed as they are; no shell reads them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "exec/host.h"
#include "exec/run_dir.h"

namespace berth {

/// Puts the text of the order's script into a file that only its user can read and run.
[[nodiscard]] Result<std::string> write_script(const RunDir& directory, const LaunchOrder& order);

/// Comes back only with an error. `script` is its path; empty: the order's command, looked for in
/// the PATH of its own environment.
[[nodiscard]] Result<void> run_program(const LaunchOrder& order, const std::string& script,
                                       std::vector<std::string> environment);

}  // namespace berth
