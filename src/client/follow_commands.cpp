// wait and logs: staying with a job to its end, through restarts of the job and of the scheduler.
#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "client/commands.h"
#include "client/draft.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/sse.h"

namespace berth::client {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// How long a scheduler may be away before we give up on it: a restart takes seconds.
constexpr auto kPatience = 120s;

/// Counts how long nobody answers; says so once.
class Patience {
 public:
  explicit Patience(const Console& console) : console_(console) {}

  void answered() { since_.reset(); }
  /// False when it has lasted too long. Otherwise pauses a little.
  bool silent(const Error& error) {
    if (!since_) {
      since_ = Clock::now();
      pause_ = 100ms;
    } else if (!said_) {
      console_.note(fmt::format("{}; waiting for it to come back", error.messages.front()));
      said_ = true;
    }
    if (Clock::now() - *since_ > kPatience) return false;
    std::this_thread::sleep_for(pause_);
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, 2s);
    return true;
  }

 private:
  const Console& console_;
  std::optional<Clock::time_point> since_;
  std::chrono::milliseconds pause_ = 100ms;
  bool said_ = false;
};

/// The scheduler's events about some jobs, from one connection as long as it lasts.
class Listener {
 public:
  explicit Listener(std::string path) : path_(std::move(path)) {}

  /// Opens the connection if there is none. An error only if the scheduler refuses.
  Result<void> open(Scheduler& scheduler) {
    if (stream_) return {};
    auto stream = scheduler.stream(path_);
    if (stream)
      stream_ = *std::move(stream);
    else if (scheduler.last_status() != 0 && scheduler.last_status() < 500)
      return tl::unexpected<Error>(stream.error());
    return {};
  }
  /// Until something happens or the connection ends; a second without one.
  void await() {
    if (!stream_) return std::this_thread::sleep_for(1s);
    while (true) {
      const auto piece = stream_->next();
      if (!piece || piece->empty()) {
        stream_.reset();
        events_ = {};
        return;
      }
      events_.add(*piece);
      bool has_event = false;
      while (events_.next()) has_event = true;
      if (has_event) return;
    }
  }

 private:
  std::string path_;
  std::unique_ptr<HttpStream> stream_;
  EventReader events_;
};

std::string event_path(const std::vector<JobNumber>& jobs) {
  // A list that long does not fit a request line; all events are a few more to skip.
  if (jobs.size() > 500) return "/events";
  return fmt::format("/events?job={}", fmt::join(jobs, ","));
}

// On standard error: standard output belongs to the job's data.
void announce(const Console& console, const JobRow& job) {
  std::string text = fmt::format("job {} {}", job.number, to_string(job.state));
  if (job.signal != 0)
    text += fmt::format(" by {}", signal_name(job.signal));
  else if (job.exit_code != 0)
    text += fmt::format(" with exit {}", job.exit_code);
  if (!job.reason.empty()) text += fmt::format(" ({})", job.reason);
  console.note(text);
}

}  // namespace

// Asks again after every event instead of reading states from events: an event that was missed
// during a restart costs nothing.
Result<std::vector<JobRow>> wait_for(Scheduler& scheduler, const std::vector<JobNumber>& jobs,
                                     const Console& console) {
  scheduler.be_patient({});  // we are, for longer
  Patience patience(console);
  Listener listener(event_path(jobs));
  while (true) {
    // Listening begins before the question is asked: what happens in between is not missed.
    BERTH_TRY_VOID(listener.open(scheduler));
    auto page = scheduler.jobs({.any_state = true, .ids = jobs});
    if (!page && scheduler.last_status() != 0 && scheduler.last_status() < 500)
      return tl::unexpected<Error>(page.error());
    if (!page) {
      if (!patience.silent(page.error())) return tl::unexpected<Error>(page.error());
      continue;
    }
    patience.answered();
    if (page->jobs.size() < jobs.size()) {
      for (const JobNumber job : jobs) {  // one that is long over may only be known by its number
        if (std::ranges::find(page->jobs, job, &JobRow::number) != page->jobs.end()) continue;
        BERTH_TRY(auto row, scheduler.job(job));
        page->jobs.push_back(std::move(row));
      }
    }
    const bool all_over =
        std::ranges::all_of(page->jobs, [](const JobRow& job) { return is_over(job.state); });
    if (all_over) return std::move(page->jobs);
    listener.await();
  }
}

int run_wait(const Call& call) {
  if (call.operands().empty())
    return call.console.complain(kMisuse, "wait: for which job? As in `berth wait 12`");
  for (const std::string& name : call.operands())
    if (const auto names = parse_job_names(name); !names)
      return call.console.complain(kMisuse, names.error());
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const auto ids = resolve_jobs(*scheduler, call.operands(), BareNumber::OneJob);
  if (!ids) return call.console.complain(kFailure, ids.error());
  const auto jobs = wait_for(*scheduler, *ids, call.console);
  if (!jobs) return call.console.complain(kFailure, jobs.error());
  int code = kSuccess;
  for (const JobRow& job : *jobs) {
    if (!call.has("quiet")) announce(call.console, job);
    code = std::max(code, exit_code_of(job));
  }
  return code;
}

namespace {

/// What is there now.
/// Piece by piece, so that a large file does not have to fit into memory.
int print_output(const Call& call, Scheduler& scheduler, const std::string& path) {
  const auto stream = scheduler.stream(path);
  if (!stream) return call.console.complain(kFailure, stream.error());
  while (true) {
    const auto piece = (*stream)->next();
    if (!piece) return call.console.complain(kFailure, piece.error());
    if (piece->empty() || !call.console.put(*piece)) return call.console.done();
  }
}

// The whole output is fetched: lines cannot be counted from the end without seeing them.
int print_last_lines(const Call& call, Scheduler& scheduler, const std::string& path,
                     std::int64_t lines) {
  const auto stream = scheduler.stream(path);
  if (!stream) return call.console.complain(kFailure, stream.error());
  const auto text = (*stream)->rest();
  if (!text) return call.console.complain(kFailure, text.error());
  std::size_t begin = text->size();
  if (begin > 0 && text->back() == '\n') --begin;
  for (; lines > 0 && begin != std::string::npos && begin > 0; --lines)
    begin = text->rfind('\n', begin - 1);
  call.console.put(std::string_view(*text).substr(
      begin == std::string::npos ? 0 : begin + (lines == 0 ? 1 : 0)));
  return call.console.done();
}

/// As it grows. When the connection ends before the job does, goes on from the byte it had come to.
int follow_output(const Call& call, Scheduler& scheduler, JobNumber job, const std::string& path) {
  scheduler.be_patient({});  // we are, for longer
  Patience patience(call.console);
  std::uint64_t offset = 0;
  while (true) {
    Error error;
    if (auto stream = scheduler.stream(fmt::format("{}&follow=1&offset={}", path, offset))) {
      while (true) {
        const auto piece = (*stream)->next();
        if (!piece) error = piece.error();
        if (!piece || piece->empty()) break;
        patience.answered();
        // Counted before it is written: after a reconnect no byte is asked for twice.
        offset += piece->size();
        if (!call.console.put(*piece)) return call.console.done();
      }
    } else if (scheduler.last_status() != 0 && scheduler.last_status() != 503) {
      return call.console.complain(kFailure, stream.error());
    } else {
      error = stream.error();
    }
    const auto row = scheduler.job(job);
    if (row && is_over(row->state) && error.messages.empty()) return call.console.done();
    if (!row && scheduler.last_status() != 0 && scheduler.last_status() < 500)
      return call.console.complain(kFailure, row.error());
    if (!row && error.messages.empty()) error = row.error();
    if (error.messages.empty()) error = Error("the output ended before the job did");
    if (!patience.silent(error)) return call.console.complain(kFailure, error);
  }
}

}  // namespace

int run_logs(const Call& call) {
  if (call.operands().size() != 1)
    return call.console.complain(kMisuse, "logs: of which job? As in `berth logs -f 12`");
  if (const auto names = parse_job_names(call.operands().front()); !names)
    return call.console.complain(kMisuse, names.error());
  std::int64_t lines = 0;
  if (call.has("lines")) {
    const auto count = parse_count(call.value("lines"), 1, 1'000'000'000);
    if (!count) return call.console.complain(kMisuse, "logs: --lines: " + count.error().text());
    if (call.has("follow"))
      return call.console.complain(kMisuse, "logs: either --lines or --follow");
    lines = *count;
  }
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const auto ids = resolve_jobs(*scheduler, call.operands(), BareNumber::OneJob);
  if (!ids) return call.console.complain(kFailure, ids.error());
  const std::string path =
      fmt::format("/jobs/{}/output?stream={}", ids->front(), call.has("err") ? "err" : "out");
  if (call.has("follow")) return follow_output(call, *scheduler, ids->front(), path);
  if (lines > 0) return print_last_lines(call, *scheduler, path, lines);
  return print_output(call, *scheduler, path);
}

}  // namespace berth::client
