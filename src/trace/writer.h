// Traces out, as our own CSV with only the columns in use. Reading the result gives the same jobs
// to the microsecond. Times stand on the trace's own clock: the zero that reading took away is put
// back.
#pragma once

#include <string>

#include "base/result.h"
#include "model/trace.h"

namespace berth {

[[nodiscard]] std::string trace_to_csv(const Trace& trace);
/// The file appears whole or not at all.
[[nodiscard]] Result<void> write_trace_csv(const Trace& trace, const std::string& path);

}  // namespace berth
