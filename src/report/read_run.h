// Reads a directory that write_run or write_comparison made, so that `berth report DIR` can build
// the page and the figures again. Errors name the file and the line.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/run_data.h"
#include "report/run_output.h"

namespace berth {

struct RunSet {
  std::vector<RunData> runs;  // without the action log
  ReportLabels labels;
};
[[nodiscard]] Result<RunSet> read_runs(const std::string& dir);
/// Builds report.html and figures/ of DIR anew from its other files.
[[nodiscard]] Result<void> rebuild_report(const std::string& dir);

}  // namespace berth
