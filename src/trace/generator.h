// Synthetic traces that look like a published one: the same job sizes, run times given the size,
// virtual clusters, runs of like submissions, day and week cycles. The recipe and its limits are in
// docs/formats/traces.md; tests hold it to the source's own statistics. Same options, same trace,
// on every machine. Sampling is stratified: shares come out as in the source even for few jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"
#include "trace/reader.h"

namespace berth {

struct GenerateOptions {
  std::string like = "philly";  // a name of generator_sources(); "venus" means helios
  std::size_t jobs = 1000;
  double total_gpus = 0;  // of the cluster; no job is larger. 0 = any size
  int gpus_per_node = 0;  // sizes above 8 are rounded up to whole nodes. 0 = as in the source
  std::optional<double> load =
      {};  // demanded GPU-seconds per second and GPU; sets the arrival rate
  std::uint64_t seed = 1;
  double burst = 1;      // 0 = no runs of like jobs, 1 = as in the source
  double diurnal = 1;    // 0 = flat rate, 1 = hour, weekday and daily swings of the source
  bool models = false;   // give every job a model name
  double deadlines = 0;  // share of jobs with a deadline, 1.05 to 3 run times after submit
  int users = 100;       // how many users submit; 0 = no user names
};

/// Submit times count from a Monday midnight (Trace::zero_seconds keeps the first one's).
[[nodiscard]] Result<Trace> generate_trace(const GenerateOptions& options);

/// What `like` may be, with one line each.
[[nodiscard]] std::vector<FormatInfo> generator_sources();

}  // namespace berth
