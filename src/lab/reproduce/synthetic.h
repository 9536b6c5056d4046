// What the reproductions on synthetic workloads share: models known only by how busy they keep a
// GPU, and traces whose jobs are drawn one by one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/trace.h"
#include "perf/profile.h"

namespace berth {

struct BusyModel {
  std::string name;
  double utilisation = 0;  // of a GPU, alone on it
};

/// Each with the same device memory, far from filling a device.
[[nodiscard]] ProfileSet busy_profiles(std::span<const BusyModel> models);

/// `draw(trace, job)` says what each job is; ids count from 1.
template <class Draw>
[[nodiscard]] Trace drawn_trace(std::string_view source, std::size_t jobs, Draw&& draw) {
  Trace trace;
  trace.source = source;
  for (std::size_t i = 0; i < jobs; ++i) {
    TraceJob job;
    job.id = trace.names.intern(fmt::format("{}", i + 1));
    draw(trace, job);
    trace.jobs.push_back(job);
  }
  trace.normalise();
  return trace;
}

}  // namespace berth
