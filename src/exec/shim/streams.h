// Standard input, output and error of a task, opened with the rights of its user only: a link in
// their way leads nowhere they could not go themselves.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "exec/host.h"

namespace berth {

/// Puts them at 0, 1, 2 and closes everything else at the next exec.
[[nodiscard]] Result<void> open_streams(const LaunchOrder& order, std::int32_t task);

}  // namespace berth
