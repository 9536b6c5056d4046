#include "client/interactive/session_job.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "client/endpoint.h"
#include "client/submit_command.h"
#include "step/local_socket.h"

namespace berth::client {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// From the job's start until its host listens, on a machine that is busy.
constexpr auto kHostPatience = 30s;
constexpr auto kEndPatience = 5s;

std::string own_program() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  std::string program = length > 0 ? std::string(path.data(), static_cast<std::size_t>(length))
                                   : std::string("berth");
  constexpr std::string_view kDeleted = " (deleted)";  // replaced by a newer one under its name
  if (program.ends_with(kDeleted)) program.resize(program.size() - kDeleted.size());
  return program;
}

std::string end_text(const JobRow& job) {
  return job.reason.empty() ? std::string(to_string(job.state))
                            : fmt::format("{} ({})", to_string(job.state), harmless(job.reason));
}

/// What the program cannot have told: that somebody else, or a limit, ended the job.
void tell_end(const JobRow& job, const Console& console) {
  if (job.state == LiveState::Cancelled || job.state == LiveState::TimedOut ||
      job.state == LiveState::Preempted || job.state == LiveState::NodeFailed ||
      (job.state == LiveState::Failed && !job.reason.empty()))
    console.note(fmt::format("job {}: {}", job.number, end_text(job)));
}

Attended after_lost(Scheduler& scheduler, JobNumber job, const std::string& why,
                    const Console& console) {
  if (const auto row = wait_for_end(scheduler, job, kEndPatience)) {
    tell_end(*row, console);
    return {.code = std::max(1, exit_code_of(*row))};
  }
  console.note(
      fmt::format("the connection to job {} is lost{}{}", job, why.empty() ? "" : ": ", why));
  console.note(fmt::format("the job was not seen to end: `sattach {0}` or `squeue -j {0}`", job));
  return {.code = kFailure, .goes_on = true};
}

}  // namespace

Result<Scheduler> local_scheduler(const std::string& server, const Console& console) {
  BERTH_TRY(auto scheduler, patient_scheduler(server, console));
  if (scheduler.endpoint().socket.empty())
    return fail(
        fmt::format("terminals do not reach over the network to {}: log in there (ssh) and "
                    "call it again, or use sbatch",
                    scheduler.endpoint().text()));
  return scheduler;
}

void make_session(Draft& draft, std::vector<std::string> host_words) {
  JobSpec& spec = draft.spec;
  spec.command = {own_program(), "step-host"};
  spec.command.insert(spec.command.end(), std::make_move_iterator(host_words.begin()),
                      std::make_move_iterator(host_words.end()));
  spec.script.clear();
  spec.input.clear();
  spec.output = spec.error = "/dev/null";
  spec.kind = JobKind::Interactive;
  spec.requeue = false;      // nobody would be there to see it again
  spec.preemptible = false;  // a terminal cannot be continued later
  draft.wait = false;
}

tl::expected<JobNumber, int> submit_session(Scheduler& scheduler, Draft& draft, Console& console) {
  if (const auto fine = complete(draft); !fine)
    return tl::unexpected<int>(console.complain(kMisuse, fine.error()));
  if (!draft.quiet)
    for (const std::string& note : draft.notes) console.note("note: " + note);
  const auto answer = scheduler.submit(draft.spec);
  if (!answer) return tl::unexpected<int>(console.complain(kFailure, answer.error()));
  if (!draft.quiet)
    for (const std::string& note : answer->reply.notes) console.note("note: " + note);
  return answer->reply.first;
}

tl::expected<JobRow, int> await_session(Scheduler& scheduler, JobNumber job, const StartWait& wait,
                                        Console& console) {
  const auto started = wait_for_start(scheduler, job, wait, console);
  if (!started) return tl::unexpected<int>(console.complain(kFailure, started.error()));
  switch (started->kind) {
    case Started::Kind::Runs: return started->job;
    case Started::Kind::Over:
      console.note(fmt::format("error: job {}: {}", job, end_text(started->job)));
      return tl::unexpected<int>(std::max(1, exit_code_of(started->job)));
    case Started::Kind::TooLate:
      give_up(scheduler, job, "it could not start at once", console);
      console.note("error: Unable to allocate resources: Requested nodes are busy");
      return tl::unexpected<int>(kFailure);
    case Started::Kind::Interrupted: break;
  }
  give_up(scheduler, job, "interrupted while it waited", console);
  console.note(fmt::format("Job allocation {} has been revoked.", job));
  return tl::unexpected<int>(128 + started->signal);
}

Result<std::string> steps_directory(Scheduler& scheduler, JobNumber job) {
  BERTH_TRY(const auto all, scheduler.steps({job}));
  const auto found = std::ranges::find(all, job, &JobSteps::job);
  if (found == all.end() || found->directory.empty())
    return fail(fmt::format("job {} does not run, or is not yours", job));
  // An operator sees where it is; what others write is not for an operator's terminal.
  struct stat what {};
  if (::stat(found->directory.c_str(), &what) == 0 && what.st_uid != ::geteuid())
    return fail(fmt::format("job {} is not yours", job));
  return found->directory;
}

Result<Fd> open_session(Scheduler& scheduler, JobNumber job, const std::string& socket) {
  const HeardInterrupts interrupts;
  const auto until = Clock::now() + kHostPatience;
  std::string why;
  while (true) {
    const auto row = scheduler.job(job);
    if (row && is_over(row->state)) return fail(fmt::format("job {}: {}", job, end_text(*row)));
    if (const auto directory = steps_directory(scheduler, job)) {
      auto connected = step::connect_at(*directory, socket);
      if (connected) return std::move(*connected);
      why = std::strerror(connected.error());
      const bool may_come = connected.error() == ENOENT || connected.error() == ECONNREFUSED;
      if (!may_come) break;
    } else {
      why = directory.error().text();
    }
    if (Clock::now() > until) break;
    if (interrupts.sleep(50ms)) return fail("interrupted");
  }
  return fail(fmt::format("cannot attach to job {}: {}", job, why));
}

Attended attend_session(Scheduler& scheduler, JobNumber job, Fd socket,
                        const step::AttachOptions& options, Console& console) {
  const step::AttachEnd end = step::attach(std::move(socket), options);
  switch (end.kind) {
    case step::AttachEnd::Kind::Exited:
      // Hung up or killed: perhaps by somebody else.
      if (end.code > 128)
        if (const auto row = wait_for_end(scheduler, job, 2s)) tell_end(*row, console);
      return {.code = end.code};
    case step::AttachEnd::Kind::Refused:
      console.note(fmt::format("error: job {}: {}", job, end.text));
      return {.code = kFailure, .goes_on = true};
    case step::AttachEnd::Kind::Left:
      console.note(fmt::format("detached from job {0}; `sattach {0}` brings it back", job));
      return {.code = end.code, .goes_on = true};
    case step::AttachEnd::Kind::Lost: break;
  }
  return after_lost(scheduler, job, end.text, console);
}

Result<StartWait> start_wait(const Parsed& parsed) {
  StartWait wait;
  wait.is_quiet = parsed.has("quiet");
  if (!parsed.has("immediate")) return wait;
  const std::string text = parsed.value("immediate");
  std::int64_t seconds = 1;
  if (!text.empty()) {
    BERTH_TRY(seconds, parse_count(text, 0, 1'000'000));
  }
  wait.at_most = std::chrono::seconds(std::max<std::int64_t>(1, seconds));
  return wait;
}

}  // namespace berth::client
