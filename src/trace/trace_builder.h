// Where every reader puts its rows. A row is begun, judged and ended; a row that broke a rule is
// either remembered as a message or, with skip_invalid, dropped and counted. Keeps ids unique,
// counts what was left out on purpose, and hands over the normalised trace or all messages at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/trace.h"
#include "trace/reader.h"

namespace berth {

/// What to do when two rows have the same id.
enum class IdRule : std::uint8_t { Unique, MakeUnique };

/// Times a job may have been put back into the queue.
inline constexpr std::int32_t kMaxRestarts = 1'000'000;

/// How a row ends that tells of one run of a job: the next row of its id may go on with it.
enum class RunEnd : std::uint8_t {
  Over,
  Lost,     // its nodes were taken from it: over, unless another row goes on with it
  Again,    // it was put back into the queue, or goes on with other devices
  Running,  // when the log was taken
  Waiting,  // when the log was taken
};

struct RowProblem {
  std::size_t column = 0;     // 1-based field number; 0 = the row as a whole
  std::string rule;           // "gpus must be at least 1"; dropped rows are counted by it
  std::string_view got = {};  // the offending text; empty = not shown
  std::string remedy = {};    // empty = "drop the row or pass --skip-invalid"
};

class TraceBuilder {
 public:
  TraceBuilder(std::string file, std::string_view format, const ReadOptions& options);

  [[nodiscard]] Trace& trace() noexcept { return trace_; }
  /// For texts that repeat (users, models): remembers recent ones, which is cheaper than a lookup.
  NameId intern(std::string_view text);
  void note(std::string text) { trace_.notes.push_back(std::move(text)); }

  /// Rows are items of a JSON list rather than lines: messages then say "item 17".
  void rows_are_items() noexcept { items_ = true; }
  void begin_row(std::size_t line);
  /// The row broke a rule. Every problem of a row is told; a dropped row counts by its first.
  void problem(RowProblem problem);
  /// The row is not a job for us (a CPU job, a step, never started): no error, counted in a note.
  void leave_out(std::string_view reason);
  [[nodiscard]] bool row_is_good() const noexcept { return !row_broken_ && !row_left_out_; }
  /// Keeps the job if the row is still good.
  void end_row(TraceJob job, std::string_view id, std::size_t id_column, IdRule rule);
  /// The same for a row that tells of one run. Rows of one id, in whatever order, become one job as
  /// far as they go on with each other; a job that never ran is left out. `restarts` are those that
  /// the row itself tells of.
  void end_run(TraceJob job, std::string_view id, std::size_t id_column, RunEnd end);

  /// A problem of the file as a whole (a missing column): cannot be skipped.
  void fatal(std::size_t line, std::size_t column, const std::string& message);
  [[nodiscard]] bool has_fatal() const noexcept { return fatal_; }

  [[nodiscard]] Result<Trace> finish(ReadReport* report);

 private:
  struct Run {
    TraceJob job;
    RunEnd end = RunEnd::Over;
    std::uint32_t line = 0;
  };
  void add_message(std::string message);
  void join_runs();
  void keep_job_of(Run run);
  void claim_id(TraceJob& job, std::string_view id, std::size_t column, IdRule rule);
  void add_notes();
  void fill(ReadReport& report) const;

  std::string file_;
  ReadOptions options_;
  Trace trace_;
  std::vector<std::string> messages_;
  std::size_t untold_messages_ = 0;
  std::map<std::string, std::size_t, std::less<>> dropped_by_rule_;
  std::map<std::string, std::size_t, std::less<>> left_out_;
  std::array<NameId, 256> recent_names_{};
  std::vector<std::uint32_t> line_of_id_;  // by NameId; 0 = not used yet
  std::map<std::uint32_t, std::uint32_t> copies_of_id_;
  std::vector<Run> runs_;  // under the id that the file gives
  std::size_t joined_runs_ = 0;
  std::size_t odd_records_ = 0;
  std::size_t renamed_ids_ = 0;
  std::size_t rows_ = 0;
  std::size_t line_ = 0;
  bool row_broken_ = false;
  bool row_left_out_ = false;
  bool fatal_ = false;
  bool items_ = false;
};

/// Text from a file made fit for a message: quoted unless a plain word or number, short, printable.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace berth
