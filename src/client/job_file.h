// Job files: YAML with the keys of a JobSpec, one job or several (docs/formats/job.md). Values are
// as people write them (time_limit: 2h, memory_mib: 16G). Complaints are file:line:column.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"

namespace berth::client {

[[nodiscard]] Result<std::vector<JobSpec>> parse_job_file(std::string_view text,
                                                          const std::string& file);

}  // namespace berth::client
