// The files of a run, column by column in docs/formats/outputs.md. Everything is written into
// DIR.tmp-PID and renamed when complete: a reader sees the whole directory or none. A directory
// that exists is used if it is empty or holds an earlier Berth run and nothing else, which is then
// replaced (its summary.json goes first and the new one comes last); if the caller insists, foreign
// files in it stay untouched.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "metrics/run_data.h"

namespace berth {

enum class Overwrite : unsigned char { BerthRunsOnly, Anything };

struct ReportLabels {
  std::string title;                    // empty: made from trace and cluster
  std::optional<std::string> baseline;  // policy or label that ratios refer to
};

/// A directory in the making. Not committed, it leaves no trace.
class OutputDirectory {
 public:
  /// Refuses at once what commit() would have to refuse: call it before a long run.
  [[nodiscard]] static Result<OutputDirectory> create(
      const std::string& dir, Overwrite overwrite = Overwrite::BerthRunsOnly);
  OutputDirectory(OutputDirectory&& other) noexcept;
  OutputDirectory& operator=(OutputDirectory&&) = delete;
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;
  ~OutputDirectory();

  /// jobs.csv, summary.json, timeline.csv and what was recorded; into the sub-directory if one is
  /// named.
  [[nodiscard]] Result<void> write_run(const RunData& run, const std::string& subdirectory = {});
  /// report.html over these runs; for several also summary.json (an array) and comparison.csv.
  [[nodiscard]] Result<void> write_report(std::span<const RunData> runs,
                                          const ReportLabels& labels);
  [[nodiscard]] Result<void> write(const std::string& relative_path, std::string_view content);
  /// Puts the finished directory in its place.
  [[nodiscard]] Result<void> commit();

 private:
  OutputDirectory() = default;
  [[nodiscard]] Result<void> move_into_existing();
  std::string target_;
  std::string temporary_;          // empty once committed or moved from
  std::vector<std::string> made_;  // parents that did not exist, outermost first
  bool exists_ = false;            // the target was there before us
};

/// One run into DIR.
[[nodiscard]] Result<void> write_run(const std::string& dir, const RunData& run,
                                     const ReportLabels& labels = {},
                                     Overwrite overwrite = Overwrite::BerthRunsOnly);
/// Several runs: DIR/<label>/… each, with summary.json, comparison.csv and report.html on top.
[[nodiscard]] Result<void> write_comparison(const std::string& dir, std::span<const RunData> runs,
                                            const ReportLabels& labels = {},
                                            Overwrite overwrite = Overwrite::BerthRunsOnly);
/// The name of a run's sub-directory: its label with everything but letters, digits, '.', '_', '-'
/// as '_'.
[[nodiscard]] std::string directory_name(const std::string& label);

/// One summary as a JSON object; several as an array: what --json prints. No line break at the end.
[[nodiscard]] std::string summary_json(const RunData& run);
[[nodiscard]] std::string summaries_json(std::span<const RunData> runs);

}  // namespace berth
