// What a job holds, on record in the directory of its steps: put there by the job's shim before its
// first process begins. A step is given of this and of nothing else. The environment says the same,
// but it is anybody's to change: a variable that is wrong must not yield another job's devices.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "step/book.h"

namespace berth {

/// Its name in the directory of steps.
inline constexpr const char* kGrantFile = "grant";

/// Cores are not in it: they may move while the job runs.
[[nodiscard]] std::string grant_text(const JobGrant& grant);
[[nodiscard]] Result<JobGrant> grant_from(std::string_view text);
/// With the cores that we are bound to, if they are as many as the job has. An error: there is no
/// record, or none that makes sense.
[[nodiscard]] Result<JobGrant> read_grant(const std::string& directory);

}  // namespace berth
