// What every trace harness checks: any bytes give a trace or an error with text; a trace has the
// promised order and its own CSV reads back to as many jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "trace/reader.h"
#include "trace/writer.h"

namespace berth {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void check_trace(std::string_view bytes, const ReadOptions& options) {
  ReadReport report;
  const auto trace = parse_trace(bytes, "fuzz", options, &report);
  if (!trace) return require(!trace.error().messages.empty() && !trace.error().text().empty());
  require(!trace->jobs.empty() && trace->jobs.size() == report.kept &&
          report.kept + report.dropped <= report.rows);
  require(trace->jobs.front().submit >= kTimeZero);
  for (std::size_t i = 0; i < trace->jobs.size(); ++i) {
    const TraceJob& job = trace->jobs[i];
    require(job.gpus >= 1 && job.duration >= Duration{} && job.gpu_milli >= 0 &&
            job.gpu_milli <= 1000);
    require(!job.recorded ||
            (job.recorded->start >= job.submit && job.recorded->end >= job.recorded->start &&
             job.recorded->held >= Duration{} && job.recorded->restarts >= 0));
    require(i == 0 || trace->jobs[i - 1].submit <= job.submit);
  }
  const auto again = parse_trace(trace_to_csv(*trace), "again", {.format = "native"});
  require(again.has_value() && again->jobs.size() == trace->jobs.size());
  for (std::size_t i = 0; i < again->jobs.size(); ++i)
    require(again->jobs[i].recorded.has_value() == trace->jobs[i].recorded.has_value());
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace berth
