// Makes a shim: a process that leaves our family at once and is found again by its claim.
#pragma once

#include <string>

#include "base/result.h"
#include "exec/run_dir.h"

namespace berth {

/// The end to read of the shim's pipe (exec/shim_protocol.h); it closes when the shim is gone. An
/// error means that there is none.
[[nodiscard]] Result<Fd> spawn_shim(const std::string& program, const RunDir& directory,
                                    AttemptId attempt);

/// berth-shim beside the running program, or in ../libexec/berth of it.
[[nodiscard]] Result<std::string> find_shim();

/// The path of the running program; if its file was replaced, that of the new one.
[[nodiscard]] std::string own_program();

}  // namespace berth
