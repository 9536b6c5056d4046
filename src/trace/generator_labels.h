// What a generated job is besides size and time: how it ends, whose it is, its model and deadline.
// Jobs of one run have one user, one queue and one model. Each trait draws from a stream of its
// own, so that asking for models or deadlines does not change the other columns.
#pragma once

#include <span>
#include <vector>

#include "base/rng.h"
#include "model/trace.h"
#include "trace/generator.h"
#include "trace/generator_tables.h"

namespace berth {

struct DraftJob {
  TraceJob job;
  std::size_t run = 0;
  double submit_seconds = 0;
};

struct LabelRequest {
  const GenerateOptions& options;
  const SourceTable& source;
  std::span<const int> cluster_of_run;
  std::vector<DraftJob>& jobs;
  const Rng& root;
};

void label_jobs(Trace& trace, const LabelRequest& request);

}  // namespace berth
