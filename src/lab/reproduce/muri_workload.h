// A trace of the Muri study: jobs with the stage times of their model and size, and how long an
// iteration takes alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"
#include "perf/profile.h"

namespace berth {

struct MuriWorkload {
  Trace trace;
  std::shared_ptr<ProfileSet> profiles;  // one per model and size, the measured cost of sharing
  std::vector<double> iteration;         // seconds of one alone, by row of the trace
};

/// The trace gives the time on storage and on cores as one; it is halved.
[[nodiscard]] Result<MuriWorkload> read_muri_workload(const std::string& path);

}  // namespace berth
