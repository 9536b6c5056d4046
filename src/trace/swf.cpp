// Standard Workload Format: 18 numbers a line, -1 for "not known", comments behind ';'. CPU logs
// are useful here as shapes of load, so one processor stands for one GPU.

#include "trace/swf.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "trace/cell.h"
#include "trace/csv.h"

namespace berth {

namespace {

constexpr std::size_t kSwfFields = 18;
enum SwfField : std::size_t {  // positions in a row, named as in the format's definition
  kJobNumber = 0,
  kSubmit = 1,
  kWait = 2,
  kRunTime = 3,
  kAllocated = 4,
  kRequested = 7,
  kRequestedTime = 8,
  kStatus = 10,
  kUser = 11,
  kGroup = 12,
  kQueue = 14,
};

using Row = std::array<std::string_view, kSwfFields>;

// Fills the first 18 fields and says how many there were in all.
std::size_t split_blanks(std::string_view line, Row& row) {
  constexpr std::string_view kBlanks = " \t\r";
  std::size_t count = 0;
  for (std::size_t start = line.find_first_not_of(kBlanks); start != std::string_view::npos;) {
    const std::size_t stop = std::min(line.find_first_of(kBlanks, start), line.size());
    if (count < kSwfFields) row[count] = line.substr(start, stop - start);
    ++count;
    start = line.find_first_not_of(kBlanks, stop);
  }
  return count;
}

std::string_view next_line(std::string_view& rest) {
  const std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  return line;
}

bool is_job_line(std::string_view line) {
  const std::string_view text = trimmed(line);
  return !text.empty() && text.front() != ';';
}

TraceStatus swf_status(std::int64_t code) {
  if (code == 0) return TraceStatus::Failed;
  if (code == 5) return TraceStatus::Killed;
  return TraceStatus::Completed;  // 1; partial executions (2, 3, 4) and unknown (-1) count as ended
}

class SwfReader {
 public:
  SwfReader(const std::string& file, const ReadOptions& options) : builder_(file, "swf", options) {}

  Result<Trace> read(std::string_view rest, ReadReport* report) {
    builder_.note("a CPU cluster's log: one processor counts as one GPU");
    for (std::size_t line_number = 1; !rest.empty(); ++line_number) {
      const std::string_view line = next_line(rest);
      if (is_job_line(line)) read_job(line, line_number);
    }
    return builder_.finish(report);
  }

 private:
  void read_job(std::string_view line, std::size_t line_number) {
    builder_.begin_row(line_number);
    Row row;
    const std::size_t count = split_blanks(line, row);
    if (count < kSwfFields) {
      return builder_.problem(
          {.column = count, .rule = fmt::format("row has {} fields, expected 18 or more", count)});
    }
    TraceJob job;
    const std::int64_t allocated = number(row, kAllocated);
    // Some logs have only the request.
    const std::int64_t processors = allocated > 0 ? allocated : number(row, kRequested);
    const double run_time = real(row, kRunTime);
    if (!builder_.row_is_good()) return;
    if (run_time <= 0 || processors <= 0)
      return builder_.leave_out("rows that never ran (run time 0)");
    if (processors > kMaxGpus)
      return builder_.problem({.column = kAllocated + 1, .rule = "gpus must be at most 1000000"});
    job.gpus = static_cast<std::int32_t>(processors);
    fill(job, row);
    builder_.end_row(job, row[kJobNumber], kJobNumber + 1, IdRule::MakeUnique);
  }

  void fill(TraceJob& job, const Row& row) {
    const auto submit = parse_instant(row[kSubmit], kTicksPerSecond);
    const auto run_time = parse_span(row[kRunTime], kTicksPerSecond);
    if (!submit.is_good()) reject(row, kSubmit, "submit time", submit.broken_rule);
    if (!run_time.is_good()) reject(row, kRunTime, "run time", run_time.broken_rule);
    job.submit = submit.value;
    job.duration = run_time.value;
    const auto wait = parse_span(row[kWait], kTicksPerSecond);
    if (wait.is_good())  // -1 = not known
      job.recorded = RecordedRun{.start = job.submit + wait.value,
                                 .end = job.submit + wait.value + job.duration,
                                 .held = job.duration};
    const auto requested = parse_span(row[kRequestedTime], kTicksPerSecond);
    if (requested.is_good()) job.estimate = requested.value;  // -1 = nothing said
    job.status = swf_status(number(row, kStatus));
    job.user = known_name(row[kUser]);
    job.group = known_name(row[kGroup]);
    job.queue = known_name(row[kQueue]);
  }

  NameId known_name(std::string_view text) {
    return text == "-1" ? NameId{} : builder_.intern(text);
  }

  void reject(const Row& row, std::size_t field, std::string_view name, std::string_view rule) {
    builder_.problem(
        {.column = field + 1, .rule = fmt::format("{} {}", name, rule), .got = row[field]});
  }

  std::int64_t number(const Row& row, std::size_t field) {
    const auto parsed = parse_whole(row[field]);
    if (!parsed.is_good())
      reject(row, field, fmt::format("field {}", field + 1), parsed.broken_rule);
    return parsed.value;
  }

  double real(const Row& row, std::size_t field) {
    const auto parsed = parse_real(row[field]);
    if (!parsed.is_good())
      reject(row, field, fmt::format("field {}", field + 1), parsed.broken_rule);
    return parsed.value;
  }

  TraceBuilder builder_;
};

}  // namespace

// The first job line decides; a thousand lines of comments are more than any archive has.
bool looks_like_swf(const Sample& sample) {
  std::string_view rest = sample.bytes;
  for (int lines = 0; !rest.empty() && lines < 1000; ++lines) {
    const std::string_view line = next_line(rest);
    if (!is_job_line(line)) continue;
    Row row;
    if (split_blanks(line, row) < kSwfFields) return false;
    return std::ranges::all_of(row,
                               [](std::string_view field) { return parse_real(field).is_good(); });
  }
  return false;
}

Result<Trace> read_swf(std::string_view bytes, const std::string& file, const ReadOptions& options,
                       ReadReport* report) {
  return SwfReader{file, options}.read(bytes, report);
}

}  // namespace berth
