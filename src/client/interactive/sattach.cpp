// sattach: back to a session whose connection was lost, or to one that runs elsewhere.
#include <algorithm>
#include <array>

#include <dirent.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "client/interactive/interactive.h"
#include "client/interactive/session_job.h"
#include "client/slurm/help.h"
#include "step/local_socket.h"
#include "step/process_use.h"
#include "step/session.h"

namespace berth::client {

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"take", 0, Nothing, "", "also if somebody is attached, who is sent away"},
    OptionSpec{"no-input", 0, Nothing, "", "only watch"},
    OptionSpec{"quiet", 'Q', Nothing, "", "say less"},
    OptionSpec{"pty", 0, Nothing, "", "as the session is"},
    OptionSpec{"label", 'l', Nothing, "", ""},
    OptionSpec{"verbose", 'v', Nothing, "", ""},
    OptionSpec{"layout", 0, Nothing, "", ""},
    OptionSpec{"input-filter", 0, Value, "TASK", ""},
    OptionSpec{"output-filter", 0, Value, "TASK", ""},
    OptionSpec{"error-filter", 0, Value, "TASK", ""},
    OptionSpec{"server", 0, Value, "SOCKET", "the scheduler's socket (default: BERTH_SOCKET)"},
    OptionSpec{"help", 'h', Nothing, "", "this text"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"version", 'V', Nothing, "", "the version"},
};

constexpr slurm::HelpPage kPage{.name = "sattach",
                                .operands = "JOB[.STEP]",
                                .summary = "return to a session whose connection was lost",
                                .more = "Its last 64 KiB of output are shown again.",
                                .examples = "sattach 12\nsattach --take 12"};

struct Target {
  JobNumber job = 0;
  std::string step;  // empty: the job's own session
};

Result<Target> target_from(const std::string& text) {
  const auto dot = text.find('.');
  BERTH_TRY(const auto job, parse_count(text.substr(0, dot), 1, std::int64_t{1} << 62U));
  return Target{.job = static_cast<JobNumber>(job),
                .step = dot == std::string::npos ? "" : text.substr(dot + 1)};
}

/// The job's own first.
std::vector<std::string> sockets_in(const std::string& directory) {
  std::vector<std::string> names;
  DIR* listing = ::opendir(directory.c_str());
  if (listing == nullptr) return names;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name(entry->d_name);
    if (name.ends_with(".sock")) names.push_back(name);
  }
  ::closedir(listing);
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return std::pair(a != step::kSessionSocket, a) < std::pair(b != step::kSessionSocket, b);
  });
  return names;
}

/// The process that listens there; 0: nobody.
pid_t host_of(const std::string& directory, const std::string& socket) {
  const auto connected = step::connect_at(directory, socket);
  if (!connected) return 0;
  ucred peer{};
  socklen_t length = sizeof peer;
  const bool told = ::getsockopt(connected->get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return told ? peer.pid : 0;
}

/// The session that runs a step: its host is an ancestor of the process that keeps the step.
Result<std::string> socket_of_step(const JobSteps& steps, const Target& target) {
  const auto step = std::ranges::find(steps.steps, target.step, &StepView::id);
  if (step == steps.steps.end() || step->state != StepState::Running)
    return fail(fmt::format("step {}.{} does not run", target.job, target.step));
  const auto processes = step::running_processes();
  for (const std::string& socket : sockets_in(steps.directory)) {
    const pid_t host = host_of(steps.directory, socket);
    if (host == 0) continue;
    const auto hosted = step::below(host, processes);
    if (std::ranges::any_of(hosted, [&](const auto& one) { return one.pid == step->pid; }))
      return socket;
  }
  return fail(
      fmt::format("step {0}.{1} has no session to attach to: its output goes to files "
                  "(`berth logs {0}`); `srun --jobid={0} --overlap --pty bash` steps into "
                  "the job",
                  target.job, target.step));
}

Result<std::string> socket_of(Scheduler& scheduler, const Target& target) {
  BERTH_TRY_VOID(steps_directory(scheduler, target.job));
  BERTH_TRY(const auto all, scheduler.steps({target.job}));
  const auto found = std::ranges::find(all, target.job, &JobSteps::job);
  if (found == all.end()) return fail(fmt::format("job {} is just over", target.job));
  if (!target.step.empty() && target.step != kInteractiveStep)
    return socket_of_step(*found, target);
  for (const std::string& socket : sockets_in(found->directory))
    if (host_of(found->directory, socket) != 0) return socket;
  return fail(
      fmt::format("job {0} has no session to attach to; `srun --jobid={0} --overlap --pty "
                  "bash` steps into it",
                  target.job));
}

}  // namespace

int run_sattach(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = slurm::usual_answer(parsed, kPage, kOptions, console)) return *code;
  if (parsed.operands.size() != 1)
    return console.complain(kMisuse, "error: which job? As in `sattach 12` or `sattach 12.0`");
  const auto target = target_from(parsed.operands.front());
  if (!target) return console.complain(kMisuse, target.error());
  auto scheduler = local_scheduler(parsed.value("server"), console);
  if (!scheduler) return console.complain(kMisuse, scheduler.error());
  const auto socket = socket_of(*scheduler, *target);
  if (!socket) return console.complain(kFailure, socket.error());
  auto connected = open_session(*scheduler, target->job, *socket);
  if (!connected) return console.complain(kFailure, connected.error());
  step::AttachOptions options;
  options.program = "sattach";
  options.what = fmt::format("job {}", target->job);
  options.takes_over = parsed.has("take");
  if (parsed.has("no-input")) options.input = step::InputUse::Withheld;
  const Attended end =
      attend_session(*scheduler, target->job, std::move(*connected), options, console);
  return end.code;
}

}  // namespace berth::client
