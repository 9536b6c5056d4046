// Traces as the command line names them: the one that is run, cut to its window, and the history
// that estimators begin with.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/options.h"
#include "base/result.h"
#include "base/time.h"
#include "model/trace.h"
#include "perf/predict/past.h"
#include "trace/reader.h"

namespace berth {

/// A time as it was typed; the error names the option.
[[nodiscard]] Result<Duration> time_option(std::string_view option, const std::string& text);
/// Reads the trace and keeps the jobs in the window.
[[nodiscard]] Result<Trace> load_trace(const InputOptions& input, ReadReport* report);
/// What a reader assumed or dropped, for people.
void tell_notes(const Trace& trace, const ReadReport& report);
/// The jobs that estimators may have seen before the run.
[[nodiscard]] Result<Trace> load_history(const InputOptions& input, const std::string& path);
/// What estimators know when the run begins: the jobs of the history at `path` that were over by
/// then. Said in the notes of the run's trace.
[[nodiscard]] Result<std::shared_ptr<const Past>> past_of(const Trace& history,
                                                          const InputOptions& input,
                                                          const std::string& path, Trace& run);

}  // namespace berth
