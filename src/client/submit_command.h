// From a finished draft to a job: shared by `berth submit` and sbatch.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/console.h"
#include "client/draft.h"

namespace berth::client {

/// Where this process is, its environment and the time.
[[nodiscard]] Result<SubmitContext> process_context();
/// "-" is standard input.
[[nodiscard]] Result<std::string> read_script(const std::string& path);

/// Settles it and finds everything that can be known to be wrong without the scheduler.
[[nodiscard]] Result<void> complete(Draft& draft);

/// How the result is told.
enum class Manner : unsigned char { Ours, Slurm };
/// Settles, checks and submits each, in order; waits if one asks for it. The exit code.
[[nodiscard]] int submit_drafts(std::vector<Draft> drafts, Manner manner, Console& console);

}  // namespace berth::client
