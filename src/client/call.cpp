// Small things that several commands share.
#include <algorithm>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "client/commands.h"
#include "client/draft.h"
#include "client/endpoint.h"

namespace berth::client {

namespace {

/// A scheduler that restarts is away for seconds. A submit waits for it; a command that only looks
/// reports soon that there is none.
constexpr std::chrono::seconds kSubmitPatience{30};
constexpr std::chrono::seconds kPatience{5};

}  // namespace

Result<Scheduler> Call::scheduler() const { return patient_scheduler(value("server"), console); }

Result<Scheduler> patient_scheduler(std::string_view server, const Console& console) {
  const Variables variables = process_variables();
  BERTH_TRY(auto endpoint, find_endpoint(server, variables));
  Scheduler::Patience patience{.of_submit = kSubmitPatience, .of_others = kPatience};
  if (const auto said = variables("BERTH_PATIENCE"); said && !said->empty()) {
    const auto seconds = parse_count(*said, 0, 86'400);
    if (!seconds) return fail("BERTH_PATIENCE: " + seconds.error().text() + " of seconds");
    patience.of_submit = patience.of_others = std::chrono::seconds(*seconds);
  }
  patience.note = [&console](const std::string& line) { console.note("note: " + line); };
  Scheduler scheduler(std::move(endpoint));
  scheduler.be_patient(std::move(patience));
  return scheduler;
}

int exit_code_of(const JobRow& job) {
  if (job.state == LiveState::Completed) return kSuccess;
  // As a shell reports a program that a signal ended.
  if (job.signal != 0) return 128 + job.signal;
  return job.exit_code != 0 ? job.exit_code : kFailure;
}

// The scheduler's words may name the job already.
std::string result_text(const VerbResult& result) {
  const std::string job = fmt::format("job {}", result.job);
  return result.text.find(job) != std::string::npos ? result.text
                                                    : fmt::format("{}: {}", job, result.text);
}

std::int64_t unix_now() { return std::time(nullptr); }

}  // namespace berth::client
