// What really became of the jobs of a trace, told as a run: the same metrics by the same
// definitions, from the start and end times that the trace knows. Nothing is simulated. The GPUs
// that utilisation refers to are those of the cluster that is given, whether or not the jobs ran on
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "metrics/run_data.h"

namespace berth {

/// What stands for a policy's name and for its label.
inline constexpr std::string_view kRecordedPolicy = "recorded";
inline constexpr std::string_view kRecordedLabel = "as recorded";

struct Recorded {
  RunData run;                 // without actions and intervals
  std::size_t unknown = 0;     // jobs of which the trace does not tell it
  std::size_t cut = 0;         // jobs that were not over when the trace was taken
  std::size_t restarted = 0;   // jobs that were put back into the queue after a run
  std::int64_t most_gpus = 0;  // held at once, at least
};

/// `rejected` (by JobId, or empty): jobs that no run on this cluster takes are no part of the means
/// here either. Nothing: the trace knows of no job what became of it.
[[nodiscard]] std::optional<Recorded> recorded_run(const Trace& trace, const Cluster& cluster,
                                                   const std::vector<bool>& rejected = {});

}  // namespace berth
