// Most formats are a table with named columns, so most formats are data: which column means what,
// in which unit times are, what to do with ids and with rows that ask for no GPU. Whatever a column
// list cannot say (a run time computed from two columns) is a short function called once per row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "trace/numbers.h"
#include "trace/trace_builder.h"

namespace berth {

/// What a column means to us. Text0… are handed to the format's own function as they are.
enum class Field : std::uint8_t {
  Key,
  Submit,
  Gpus,
  RunTime,
  User,
  Group,
  Queue,
  Name,
  Model,
  GpuType,
  GpusMin,
  GpusMax,
  GpuMilli,
  Cpus,
  MemoryGb,
  BatchSize,
  Iterations,
  Deadline,
  SoftDeadline,
  Priority,
  Weight,
  Kind,
  Study,
  Status,
  Error,
  FailedAttempts,
  Estimate,
  CancelTime,
  RecordedStart,
  RecordedEnd,
  RecordedHeld,
  Restarts,
  Cut,
  Text0,
  Text1,
  Text2,
  Text3,
  Text4,
  Text5,
  Text6,
  Text7,
  Text8,
  Text9,
  Text10,
  Text11,
  Text12,
  Text13,
};

/// How many Text fields there are.
inline constexpr std::size_t kTexts = 14;

enum class Presence : bool { Optional, Required };

struct TableColumn {
  std::string_view name;  // as in the header, lower case
  Field field;
  Presence presence = Presence::Optional;
};

/// One row while its format's own function looks at it.
struct TableRow {
  TraceBuilder& builder;
  TraceJob& job;
  std::string_view key;                        // the job id, if the file has one
  std::array<std::string_view, kTexts> texts;  // Text0 …
  std::array<std::size_t, kTexts>
      columns;                // their field numbers, for messages; 0 = not in the file
  RunEnd end = RunEnd::Over;  // of a row that tells of a run

  void problem(std::size_t text, std::string rule) const {
    builder.problem({.column = columns[text], .rule = std::move(rule), .got = texts[text]});
  }
};

enum class NoGpu : std::uint8_t { Invalid, LeaveOut };  // a row that asks for zero GPUs
enum class NeverRan : std::uint8_t { Keep, LeaveOut };  // a row whose run time is zero
/// Runs: a row is a run of a job, and rows of one id may be one job.
enum class Ids : std::uint8_t { Given, GivenMayRepeat, RowNumber, Runs };
enum class Header : bool { Named, None };  // None: columns by position

struct TableFormat {
  std::string_view name;
  std::span<const TableColumn> columns;
  std::int64_t ticks_per_unit = kTicksPerSecond;
  Ids ids = Ids::Given;
  NoGpu no_gpu = NoGpu::Invalid;
  NeverRan never_ran = NeverRan::LeaveOut;
  Header header = Header::Named;
  void (*complete)(TableRow&) = nullptr;
  std::string_view note = {};  // what the format makes us assume
};

[[nodiscard]] Result<Trace> read_table(std::string_view bytes, const std::string& file,
                                       const TableFormat& format, const ReadOptions& options,
                                       ReadReport* report);

}  // namespace berth
