// Which jobs a dependency means. The number of an array stands for all its jobs, "12_3" for one of
// them, and aftercorr for the one with the dependant's own index. A job that is no array stands for
// itself.
#pragma once

#include <optional>
#include <vector>

#include "model/job_spec.h"

namespace berth {

/// What is known of the job that a dependency names.
struct NamedJob {
  JobNumber array = 0;  // number of the first job of its array; 0: it is in none
  const ArraySpec* indices = nullptr;
};

/// In order of number; empty: there is no job of that index. `own_index`: of the dependant, if it is
/// in an array.
[[nodiscard]] std::vector<JobNumber> targets_of(const Dependency& dependency, const NamedJob& named,
                                                std::optional<std::int32_t> own_index);

}  // namespace berth
