// Traces in: reads the native CSV and the formats in which clusters have been published, and
// returns one normalised Trace (rows by submit time, the first at zero). The format is recognised
// by content or named. Input is untrusted: any bytes give a Trace or an Error, nothing crashes or
// throws. What was assumed or left out is told in Trace::notes. docs/formats/traces.md has the
// details.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace berth {

struct ReadOptions {
  std::string format;           // "" = recognise by content; otherwise a name of trace_formats()
  bool skip_invalid = false;    // drop rows that break a rule instead of failing
  std::size_t max_errors = 20;  // messages before "and N more"
};

struct ReadReport {
  std::size_t rows = 0;     // data rows in the file
  std::size_t kept = 0;     // jobs in the trace
  std::size_t dropped = 0;  // broken rows, with skip_invalid; left-out rows (CPU jobs …) are notes
  std::vector<std::string> dropped_reasons;  // "205 rows: gpus must be at least 1", most first
};

struct FormatInfo {
  std::string name;
  std::string description;  // one line
};

/// Reads a file, packed with gzip or not.
[[nodiscard]] Result<Trace> read_trace(const std::string& path, const ReadOptions& options = {},
                                       ReadReport* report = nullptr);
/// The same for bytes in memory; `name` stands for the file in messages.
[[nodiscard]] Result<Trace> parse_trace(std::string_view bytes, const std::string& name,
                                        const ReadOptions& options = {},
                                        ReadReport* report = nullptr);

/// Every format there is, native first.
[[nodiscard]] std::vector<FormatInfo> trace_formats();

}  // namespace berth
