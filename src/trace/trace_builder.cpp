// Collects jobs and complaints while a reader goes through a file. A broken row is an error, or is
// counted and dropped with --skip-invalid; a row that is left out is neither.

#include "trace/trace_builder.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/int128.h"

namespace berth {

namespace {

constexpr Duration kLongest =
    std::chrono::duration_cast<Duration>(std::chrono::duration<double>(kMaxInputSeconds));

bool has_run(const TraceJob& job) noexcept { return job.duration > Duration{}; }

/// Whether `next` is the same job, put back after the run that `run` tells of. A killed scheduler
/// hands out ids again: then another user comes.
bool goes_on(const TraceJob& run, RunEnd end, const TraceJob& next) noexcept {
  return (end == RunEnd::Again || end == RunEnd::Lost) && next.user == run.user &&
         next.submit >= run.submit;
}

/// A clock that was wrong says nothing about waiting; the job itself is as good as others.
bool can_be_true(const RecordedRun& record, Time submit) noexcept {
  return record.start >= submit && record.end >= record.start && record.end <= Time{kLongest} &&
         record.held <= kLongest;
}

/// Work of both in time at the size of the later one.
Duration joined_work(const TraceJob& first, const TraceJob& next) {
  const auto devices = [](const TraceJob& job) { return job.gpu_milli == 0 ? 1 : job.gpus; };
  const Int128 total = Int128{first.duration.count()} * devices(first) +
                       Int128{next.duration.count()} * devices(next);
  return Duration{
      static_cast<std::int64_t>(std::min(total / devices(next), Int128{kLongest.count()}))};
}

std::optional<RecordedRun> joined_record(const TraceJob& first, const TraceJob& next) {
  if (!first.recorded || !next.recorded) return std::nullopt;
  return RecordedRun{
      .start = first.recorded->start,
      .end = next.recorded->end,
      .held = std::min(first.recorded->held + next.recorded->held, kLongest),
      .restarts =
          std::min(std::max(first.recorded->restarts + 1, next.recorded->restarts), kMaxRestarts),
      .is_cut = next.recorded->is_cut};
}

}  // namespace

TraceBuilder::TraceBuilder(std::string file, std::string_view format, const ReadOptions& options)
    : file_(std::move(file)), options_(options) {
  trace_.source = file_;
  trace_.format = format;
  options_.max_errors = std::max<std::size_t>(options_.max_errors, 1);
}

NameId TraceBuilder::intern(std::string_view text) {
  if (text.empty()) return NameId{};
  const auto last = static_cast<unsigned char>(text.back());
  const auto before = static_cast<unsigned char>(text[text.size() / 2]);
  // A small cache by three cheap features of the text: the same few users and queues come row after
  // row, and a hit spares the hash table.
  NameId& recent = recent_names_[(last * 31U + before * 7U + text.size()) % recent_names_.size()];
  if (trace_.text(recent) != text) recent = trace_.names.intern(text);
  return recent;
}

void TraceBuilder::begin_row(std::size_t line) {
  ++rows_;
  line_ = line;
  row_broken_ = false;
  row_left_out_ = false;
}

void TraceBuilder::problem(RowProblem problem) {
  const bool first = !std::exchange(row_broken_, true);
  if (options_.skip_invalid) {
    // Counted once per row, by the first rule it breaks.
    if (first) ++dropped_by_rule_[problem.rule];
    return;
  }
  if (messages_.size() >= options_.max_errors) {
    ++untold_messages_;
    return;
  }
  const std::string got = problem.got.empty() ? "" : ", got " + in_quotes(problem.got);
  const std::string_view remedy = problem.remedy.empty() ? "drop the row or pass --skip-invalid"
                                                         : std::string_view(problem.remedy);
  const std::string place = items_ ? fmt::format("{}: item {}", file_, line_)
                                   : fmt::format("{}:{}:{}", file_, line_, problem.column);
  messages_.push_back(fmt::format("{}: {}{} ({})", place, problem.rule, got, remedy));
}

// Only the first reason of a row counts: sums over reasons are numbers of rows.
void TraceBuilder::leave_out(std::string_view reason) {
  if (std::exchange(row_left_out_, true)) return;
  const auto found = left_out_.find(reason);
  if (found == left_out_.end()) {
    left_out_.emplace(reason, 1);
  } else {
    ++found->second;
  }
}

void TraceBuilder::end_row(TraceJob job, std::string_view id, std::size_t id_column, IdRule rule) {
  if (!row_is_good()) return;
  if (job.recorded && !can_be_true(*job.recorded, job.submit)) {
    ++odd_records_;
    job.recorded.reset();
  }
  claim_id(job, id, id_column, rule);
  if (row_is_good()) trace_.jobs.push_back(job);
}

void TraceBuilder::end_run(TraceJob job, std::string_view id, std::size_t id_column, RunEnd end) {
  if (!row_is_good()) return;
  if (id.empty()) return problem({.column = id_column, .rule = "job_id must not be empty"});
  job.id = trace_.names.intern(id);
  runs_.push_back({job, end, static_cast<std::uint32_t>(std::max<std::size_t>(line_, 1))});
}

// Logs list the runs of a job in no particular order: they are sorted first.
void TraceBuilder::join_runs() {
  std::ranges::stable_sort(runs_, {}, [](const Run& run) {
    return std::tuple(run.job.id, run.job.submit,
                      run.job.recorded ? run.job.recorded->start : run.job.submit);
  });
  for (std::size_t i = 0; i < runs_.size();) {
    Run whole = runs_[i++];
    for (; i < runs_.size() && runs_[i].job.id == whole.job.id &&
           goes_on(whole.job, whole.end, runs_[i].job);
         ++i) {
      const TraceJob& next = runs_[i].job;
      ++joined_runs_;
      whole.end = runs_[i].end;
      if (!has_run(next)) {  // it waited again, and perhaps was cancelled then
        whole.job.status = next.status;
        whole.job.failure = next.failure;
        continue;
      }
      TraceJob job = next;
      job.submit = whole.job.submit;
      job.duration = has_run(whole.job) ? joined_work(whole.job, next) : next.duration;
      if (has_run(whole.job)) job.recorded = joined_record(whole.job, next);
      whole.job = job;
    }
    keep_job_of(std::move(whole));
  }
  runs_.clear();
}

void TraceBuilder::keep_job_of(Run run) {
  line_ = run.line;
  row_broken_ = row_left_out_ = false;
  if (!has_run(run.job)) return leave_out("rows that never ran (run time 0)");
  if (run.end != RunEnd::Over && run.end != RunEnd::Lost) {
    run.job.status = TraceStatus::Completed;  // nothing is known of how it will end
    if (run.job.recorded) run.job.recorded->is_cut = true;
  }
  const std::string id(trace_.text(run.job.id));  // the names may move
  end_row(run.job, id, 0, IdRule::MakeUnique);
}

void TraceBuilder::claim_id(TraceJob& job, std::string_view id, std::size_t column, IdRule rule) {
  if (id.empty()) {
    problem({.column = column, .rule = "job_id must not be empty"});
    return;
  }
  const auto line_of = [this](NameId name) -> std::uint32_t& {
    if (name.value >= line_of_id_.size())
      line_of_id_.resize(std::max<std::size_t>(1024, name.value * std::size_t{2}));
    return line_of_id_[name.value];
  };
  job.id = trace_.names.intern(id);
  if (line_of(job.id) != 0) {
    if (rule == IdRule::Unique) {
      problem({.column = column,
               .rule = "job_id must be unique",
               .got = id,
               .remedy = fmt::format("already used on line {}; rename it or pass --skip-invalid",
                                     line_of(job.id))});
      return;
    }
    std::uint32_t& copies = copies_of_id_[job.id.value];  // remembered: an id may repeat 10^5 times
    copies = std::max<std::uint32_t>(copies, 1);
    const std::string base(id);
    // A name with "#2" may itself be in the file: go on until a free one is found.
    while (line_of(job.id) != 0) job.id = trace_.names.intern(fmt::format("{}#{}", base, ++copies));
    ++renamed_ids_;
  }
  line_of(job.id) = static_cast<std::uint32_t>(std::max<std::size_t>(line_, 1));
}

void TraceBuilder::fatal(std::size_t line, std::size_t column, const std::string& message) {
  fatal_ = true;
  add_message(fmt::format("{}:{}:{}: {}", file_, line, column, message));
}

void TraceBuilder::add_message(std::string message) {
  if (messages_.size() < options_.max_errors) {
    messages_.push_back(std::move(message));
  } else {
    ++untold_messages_;
  }
}

Result<Trace> TraceBuilder::finish(ReadReport* report) {
  join_runs();
  if (report != nullptr) fill(*report);
  if (messages_.empty() && trace_.jobs.empty()) {
    const char* const why =
        rows_ == 0 ? "add rows below the header" : "every row was left out or dropped";
    std::string message = fmt::format("{}:1:1: holds no jobs ({})", file_, why);
    for (const auto& [reason, count] : left_out_) message += fmt::format("; {} {}", count, reason);
    for (const auto& [rule, count] : dropped_by_rule_)
      message += fmt::format("; {} rows: {}", count, rule);
    messages_.push_back(std::move(message));
  }
  if (!messages_.empty()) {
    if (untold_messages_ > 0)
      messages_.push_back(fmt::format("{}: and {} more", file_, untold_messages_));
    Error error;
    error.messages = std::move(messages_);
    return tl::unexpected<Error>(std::move(error));
  }
  add_notes();
  trace_.normalise();
  return std::move(trace_);
}

void TraceBuilder::add_notes() {
  for (const auto& [reason, count] : left_out_) note(fmt::format("left out {} {}", count, reason));
  if (joined_runs_ > 0)
    note(
        fmt::format("{} rows go on with an earlier one of their job: its runs are one job, its run "
                    "time is their sum",
                    joined_runs_));
  if (odd_records_ > 0)
    note(
        fmt::format("{} jobs started before they were submitted, or ended before they started: the "
                    "log's word on that is not used",
                    odd_records_));
  if (renamed_ids_ > 0) {
    note(fmt::format("{} rows repeat the id of an earlier one; they were given a suffix such as #2",
                     renamed_ids_));
  }
  for (const auto& [rule, count] : dropped_by_rule_)
    note(fmt::format("dropped {} invalid rows: {}", count, rule));
}

void TraceBuilder::fill(ReadReport& report) const {
  report = {.rows = rows_, .kept = trace_.jobs.size(), .dropped = 0, .dropped_reasons = {}};
  std::vector<std::pair<std::size_t, std::string_view>> reasons;
  for (const auto& [rule, count] : dropped_by_rule_) {
    report.dropped += count;
    reasons.emplace_back(count, rule);
  }
  std::ranges::stable_sort(reasons, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [count, rule] : reasons) {
    report.dropped_reasons.push_back(
        fmt::format("{} {}: {}", count, count == 1 ? "row" : "rows", rule));
  }
}

std::string in_quotes(std::string_view text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '+';
  };
  if (!text.empty() && text.size() <= 24 && std::ranges::all_of(text, is_plain))
    return std::string(text);
  constexpr std::size_t kShown = 40;
  std::string shown = "\"";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  // A cut in the middle of a UTF-8 sequence would make the whole message invalid.
  if (text.size() > kShown) {
    while (shown.size() > 1 && (static_cast<unsigned char>(shown.back()) & 0x80U) != 0)
      shown.pop_back();
    shown += "…";
  }
  return shown + '"';
}

}  // namespace berth
