// Interactive use: srun and salloc outside a job, sattach, `berth notebook`. Each submits a job
// whose program hosts a session (step/session.h), waits in the queue and says why, and attaches.
#pragma once

#include <span>
#include <string>

#include "client/commands.h"
#include "client/console.h"
#include "client/draft.h"

namespace berth::client {

/// srun where there is no job: submits one that runs the same words inside. With --jobid it steps
/// into a job that runs already.
[[nodiscard]] int run_srun_outside(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_salloc(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_sattach(std::span<const std::string> words, Console& console);
[[nodiscard]] int run_notebook(const Call& call);
[[nodiscard]] const OptionTable& notebook_options();

}  // namespace berth::client
