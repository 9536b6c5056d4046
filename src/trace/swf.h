// The Standard Workload Format of the Parallel Workloads Archive: 18 whitespace-separated numbers
// per job, comments after ';', extensions with more fields. CPU clusters: one processor counts as
// one GPU.
#pragma once

#include "trace/formats.h"

namespace berth {

[[nodiscard]] bool looks_like_swf(const Sample& sample);
[[nodiscard]] Result<Trace> read_swf(std::string_view bytes, const std::string& file,
                                     const ReadOptions& options, ReadReport* report);

}  // namespace berth
