// The options of srun and salloc outside a job: sbatch's for what the job asks for, and their own.
// What concerns the tasks (--label, --output …) is read again by srun inside the job.
#pragma once

#include "client/draft.h"

namespace berth::client {

[[nodiscard]] const OptionTable& srun_outside_options();
[[nodiscard]] const OptionTable& salloc_options();

}  // namespace berth::client
