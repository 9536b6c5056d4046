#include "trace/jobcomp.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "trace/cell.h"
#include "trace/csv.h"
#include "trace/numbers.h"
#include "trace/slurm_text.h"
#include "trace/trace_builder.h"

namespace berth {

namespace {

constexpr std::string_view kBegin = "JobId=";
constexpr std::string_view kName = " Name=";
constexpr std::string_view kState = " JobState=";
constexpr std::string_view kFolder = " WorkDir=";

std::string_view next_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view word_at(std::string_view text, std::size_t key, std::size_t length) {
  if (key == std::string_view::npos) return {};
  text.remove_prefix(key + length);
  return text.substr(0, text.find(' '));
}

/// A line in the parts whose order Slurm fixes: what stands before the name, between the name and
/// the folder, and behind the folder. What a user wrote can only be in the name or in the folder.
class JobLine {
 public:
  explicit JobLine(std::string_view line) {
    const std::size_t name = line.find(kName);
    const std::size_t state = line.rfind(kState);
    if (!line.starts_with(kBegin) || name >= state || state == std::string_view::npos) return;
    head_ = line.substr(0, name);
    name_ = line.substr(name + kName.size(), state - name - kName.size());
    const std::size_t folder = std::min(line.find(kFolder, state), line.size());
    middle_ = line.substr(state, folder - state);
    tail_ = line.substr(folder);
  }
  [[nodiscard]] bool is_whole() const noexcept { return !middle_.empty(); }
  [[nodiscard]] std::string_view id() const { return word_at(head_, 0, kBegin.size()); }
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  /// "ann" of UserId=ann(1000).
  [[nodiscard]] std::string_view user() const {
    constexpr std::string_view kKey = " UserId=";
    const std::string_view user = word_at(head_, head_.find(kKey), kKey.size());
    return user.substr(0, user.find('('));
  }
  [[nodiscard]] std::string_view before_folder(std::string_view key) const {
    return word_at(middle_, middle_.find(key), key.size());
  }
  /// From behind: the folder is the first of them.
  [[nodiscard]] std::string_view behind_folder(std::string_view key) const {
    return word_at(tail_, tail_.rfind(key), key.size());
  }

 private:
  std::string_view head_, name_, middle_, tail_;
};

std::optional<Time> moment(std::string_view text) {
  if (text.empty() || text == "Unknown" || text == "None") return std::nullopt;
  const auto parsed = parse_instant(text, kTicksPerSecond);
  return parsed.is_good() ? std::optional(parsed.value) : std::nullopt;
}

void add_line(TraceBuilder& builder, const JobLine& line) {
  const auto submit = parse_instant(line.behind_folder(" SubmitTime="), kTicksPerSecond);
  if (!submit.is_good())
    return builder.problem({.column = 1,
                            .rule = fmt::format("SubmitTime {}", submit.broken_rule),
                            .got = line.behind_folder(" SubmitTime=")});
  SlurmTimes times{.start = moment(line.before_folder(" StartTime=")),
                   .end = moment(line.before_folder(" EndTime="))};
  if (times.start && times.end) {
    if (*times.end < *times.start)
      return builder.problem({.column = 1, .rule = "EndTime must not be before StartTime"});
    times.elapsed = *times.end - *times.start;
  }
  SlurmResources given = parse_tres(line.behind_folder(" Tres="));
  const auto processors = parse_whole(line.before_folder(" ProcCnt="));
  if (given.cpus == 0 && processors.is_good())
    given.cpus = std::clamp<std::int64_t>(processors.value, 0, 1'000'000);
  if (given.gpus > kMaxGpus)
    return builder.problem({.column = 1, .rule = "gpus must be at most 1000000"});
  TraceJob job;
  if (!set_resources(job, given) && times.elapsed > Duration{})
    return builder.leave_out("rows that name neither GPUs nor CPUs");
  set_record(job, times);
  job.submit = submit.value;
  const auto limit = parse_span(line.before_folder(" TimeLimit="), kTicksPerMinute);
  if (limit.is_good()) job.estimate = limit.value;  // otherwise UNLIMITED, Partition_Limit
  const std::string_view state = line.before_folder(kState);
  job.status = slurm_status(state);
  job.failure = failure_kind_from(state).value_or(FailureKind::Unknown);
  job.user = builder.intern(line.user());
  job.group = builder.intern(line.behind_folder(" Account="));
  job.queue = builder.intern(line.before_folder(" Partition="));
  job.name = builder.intern(trimmed(line.name()));
  // A line is written when a run is over: one that is pending then was put back.
  const RunEnd end = slurm_run_end(state, times.end.has_value());
  builder.end_run(job, line.id(), 1, end == RunEnd::Waiting ? RunEnd::Again : end);
}

}  // namespace

bool looks_like_jobcomp(const Sample& sample) {
  return sample.first_line.starts_with(kBegin) &&
         sample.first_line.find(kState) != std::string_view::npos;
}

Result<Trace> read_jobcomp(std::string_view bytes, const std::string& file,
                           const ReadOptions& options, ReadReport* report) {
  TraceBuilder builder(file, "sacct", options);
  builder.note("a file of jobcomp: jobs that have not ended are not in it; times are read as UTC");
  for (std::size_t number = 1; !bytes.empty(); ++number) {
    const std::string_view text = next_line(bytes);
    if (trimmed(text).empty()) continue;
    builder.begin_row(number);
    const JobLine line(text);
    if (line.is_whole())
      add_line(builder, line);
    else if (text.starts_with(kBegin))
      builder.problem({.column = 1, .rule = "the line is cut off, or a name in it is broken"});
    else
      builder.leave_out("lines that go on with a name");
  }
  return builder.finish(report);
}

}  // namespace berth
