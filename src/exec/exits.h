// The exit record of an attempt, read from its file.
#pragma once

#include <optional>

#include "exec/host.h"
#include "exec/run_dir.h"

namespace berth {

/// Nothing if there is none; an error if it cannot be believed.
[[nodiscard]] Result<std::optional<ExitRecord>> read_exit(const RunDir& directory,
                                                          AttemptId attempt);

}  // namespace berth
