// The last step of a task: its program. Words are passed as they are; no shell reads them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "exec/host.h"
#include "exec/run_dir.h"

namespace berth {

/// Puts the text of the order's script into a file that only its user can read. It is never run as
/// a program: run directories lie on file systems that are mounted noexec.
[[nodiscard]] Result<std::string> write_script(const RunDir& directory, const LaunchOrder& order);

/// A script, open for whoever is not let through to it.
struct ScriptFile {
  std::string path;  // empty: none, the order's command runs
  Fd file{};
};
/// Opens it with the rights that the caller still has.
[[nodiscard]] ScriptFile open_script(const std::string& path);

/// Comes back only with an error, which names the cause. A script is given to the program of its
/// first line, as the kernel would; a command is looked for in the PATH of the order's environment.
[[nodiscard]] Result<void> run_program(const LaunchOrder& order, const ScriptFile& script,
                                       std::vector<std::string> environment);

}  // namespace berth
