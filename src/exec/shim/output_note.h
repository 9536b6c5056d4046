// A line for people at the end of a job's own output: where they look first for why it ended.
#pragma once

#include <string>

#include "exec/host.h"

namespace berth {

/// Written with the rights of its user, and not at all if that takes longer than a moment: the file
/// may lie on a disk that does not answer.
void note_in_output(const LaunchOrder& order, const std::string& line);

/// "berth: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-18T07:00:00 DUE TO TIME LIMIT ***", in the
/// words that people search logs for.
[[nodiscard]] std::string time_limit_note(const LaunchOrder& order, const std::string& node);

/// "berth: error: *** JOB 12 ON n1 Detected oom_kill event: OUT OF MEMORY, its limit is 50 MiB ***"
[[nodiscard]] std::string memory_note(const LaunchOrder& order, const std::string& node);

}  // namespace berth
