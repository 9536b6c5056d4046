#include "apps/load_trace.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/terminal.h"
#include "base/params.h"

namespace berth {

namespace {

Result<void> keep_window(Trace& trace, const InputOptions& input) {
  Time from{};
  Time until = kNever;
  if (!input.from.empty()) {
    BERTH_TRY(const Duration begin, time_option("--from", input.from));
    from += begin;
  }
  if (!input.until.empty()) {
    BERTH_TRY(const Duration end, time_option("--until", input.until));
    until = Time{end};
  }
  if (until <= from) return fail("--until: must be later than --from");
  const auto before = std::ranges::count_if(trace.jobs, [&](const TraceJob& job) {
    return job.submit < from && job.recorded && job.recorded->end > from;
  });
  if (before > 0)
    trace.notes.push_back(
        fmt::format("{} jobs from before --from were not over then: in reality they were in the "
                    "way of those in the window, in a simulation they are not",
                    before));
  std::erase_if(trace.jobs,
                [&](const TraceJob& job) { return job.submit < from || job.submit >= until; });
  if (input.limit > 0 && trace.jobs.size() > input.limit) trace.jobs.resize(input.limit);
  if (trace.jobs.empty())
    return fail(
        fmt::format("{}: no job was submitted in that window (see --from, --until)", input.trace));
  trace.normalise();
  return {};
}

/// Times of two files are on one clock if both count from a date, or if it is one file.
Clocks clocks_of(const Trace& history, const Trace& run, const InputOptions& input,
                 const std::string& path) {
  std::error_code unknown;
  const bool one_file = std::filesystem::equivalent(input.trace, path, unknown);
  const bool calendars = history.zero_seconds != 0 && run.zero_seconds != 0;
  return one_file || calendars ? Clocks::Same : Clocks::Apart;
}

}  // namespace

Result<Duration> time_option(std::string_view option, const std::string& text) {
  auto parsed = parse_duration(text);
  if (!parsed) return fail(fmt::format("{}: {}", option, parsed.error().text()));
  return parsed;
}

Result<Trace> load_trace(const InputOptions& input, ReadReport* report) {
  BERTH_TRY(Trace trace,
            read_trace(input.trace, {.format = input.format, .skip_invalid = input.skip_invalid},
                       report));
  if (trace.jobs.empty()) return fail(fmt::format("{}: the trace has no jobs", input.trace));
  BERTH_TRY_VOID(keep_window(trace, input));
  return trace;
}

void tell_notes(const Trace& trace, const ReadReport& report) {
  for (const std::string& note : trace.notes) print_note(fmt::format("note: {}", note));
  if (report.dropped == 0) return;
  print_note(fmt::format("note: dropped {} of {} rows", report.dropped, report.rows));
  for (const std::string& reason : report.dropped_reasons)
    print_note(fmt::format("note:   {}", reason));
}

Result<Trace> load_history(const InputOptions& input, const std::string& path) {
  BERTH_TRY(Trace history, read_trace(path, {.format = {}, .skip_invalid = input.skip_invalid}));
  if (history.jobs.empty()) return fail(fmt::format("{}: the history has no jobs", path));
  return history;
}

Result<std::shared_ptr<const Past>> past_of(const Trace& history, const InputOptions& input,
                                            const std::string& path, Trace& run) {
  const auto past =
      std::make_shared<const Past>(history, run, clocks_of(history, run, input, path));
  if (past->size() == 0)
    return fail(
        fmt::format("{}: no job of the history was over when the run begins (take an "
                    "earlier history or a later --from)",
                    path));
  run.notes.push_back(fmt::format("history: {} jobs of {}", past->size(), path));
  if (past->left_out() > 0)
    run.notes.push_back(fmt::format("history: {} jobs left out, they ended after the run begins",
                                    past->left_out()));
  return past;
}

}  // namespace berth
