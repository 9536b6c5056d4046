// The steps of a job as people are told of them: its script first, then what srun has made.
#pragma once

#include <vector>

#include "exec/host.h"
#include "store/store.h"
#include "wire/views.h"

namespace berth {

/// Of its last attempt: `kept` while that runs, from the record afterwards.
[[nodiscard]] JobSteps steps_of_job(const JobView& job, const std::vector<AttemptRow>& attempts,
                                    KeptSteps kept);

}  // namespace berth
