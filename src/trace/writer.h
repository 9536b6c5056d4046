// Traces out, as our own CSV with only the columns in use. Reading the result gives the same jobs
// to the microsecond. Times stand on the trace's own clock: the zero that reading took away is put
// back.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/trace.h"

namespace berth {

/// What jobs have used: no part of a trace, and ignored by readers.
inline constexpr std::string_view kEnergyColumn = "energy_kwh";

/// With a column more, if `energy` tells kWh of some job.
[[nodiscard]] std::string trace_to_csv(const Trace& trace,
                                       const std::function<double(const TraceJob&)>& energy = {});
/// The file appears whole or not at all.
[[nodiscard]] Result<void> write_trace_csv(const Trace& trace, const std::string& path);

}  // namespace berth
