// Berth's sign of life: a small file with the time (Unix seconds) in its first line, put anew every
// few seconds while Berth decides for a Slurm. Two look at it: the job_submit script, which holds
// new jobs only while it is fresh, and `berth slurm watch`, which hands the queue back when it has
// stopped. Whole or not at all for whoever reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace berth::slurm {

inline constexpr const char* kDefaultHeartbeat = "/run/berth/heartbeat";

/// Readable by everybody: slurmctld may run as another user.
[[nodiscard]] Result<void> beat(const std::string& path, std::int64_t unix_seconds);
/// Nothing: no file, or nothing in it that is a time. Never waits, also not for a pipe.
[[nodiscard]] std::optional<std::int64_t> last_beat(const std::string& path);

}  // namespace berth::slurm
