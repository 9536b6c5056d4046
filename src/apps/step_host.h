// `berth step-host`: hosts a session inside a job (step/session.h). Not a command for people: srun,
// salloc and `berth notebook` make it the program of the job they submit, and a shim starts it for
// whoever steps into a running job.
#pragma once

#include <span>
#include <string>

namespace berth {

/// The words behind its name; answers the exit code of the job.
[[nodiscard]] int run_step_host(std::span<const std::string> words);

}  // namespace berth
