// srun's words, as a request for a step of the job we are in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/options.h"
#include "step/plan.h"
#include "step/runner.h"

namespace berth::client {

struct SrunCall {
  StepRequest request;
  RunSettings settings;              // as far as the words tell
  std::string multi_prog;            // path; empty: the program is in the request
  std::string input, output, error;  // as given
  bool immediate = false;            // do not wait for others to leave
  bool quiet = false;
  std::vector<std::string> notes;  // what could not be honoured
};

[[nodiscard]] std::span<const OptionSpec> srun_options();
/// With what Slurm's variables say where the words are silent (SLURM_GPUS_PER_TASK, SLURM_LABELIO …):
/// the job's own request, and what a script exports for all of its steps.
[[nodiscard]] Parsed with_variables(Parsed parsed, const Environment& environment);
/// Outside of a job a program is started in a new one: the words mean the same.
[[nodiscard]] Result<SrunCall> srun_call(const Parsed& parsed, const JobWorld& world);

}  // namespace berth::client
