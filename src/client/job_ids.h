// Jobs as people name them: "12", "12_3" (of an array), "12_[1-3,7]", "12_*", several by commas.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/scheduler.h"
#include "model/job_spec.h"

namespace berth::client {

struct JobName {
  JobNumber number = 0;
  std::optional<std::vector<std::int32_t>> indices;  // of the array; empty list: all of it
};
[[nodiscard]] Result<std::vector<JobName>> parse_job_names(std::string_view text);

/// Whether a bare number of an array's first job stands for that job or for all of the array.
enum class BareNumber : unsigned char { OneJob, WholeArray };
/// The numbers behind names; only names of arrays need to ask the scheduler.
[[nodiscard]] Result<std::vector<JobNumber>> resolve_jobs(Scheduler& scheduler,
                                                          const std::vector<std::string>& names,
                                                          BareNumber bare);

}  // namespace berth::client
