// srun where there is no job: one is made whose session runs the same words inside.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/interactive/interactive.h"
#include "client/interactive/session_job.h"
#include "client/interactive/session_options.h"
#include "client/interactive/session_words.h"
#include "client/submit_command.h"
#include "step/join_request.h"
#include "step/session.h"

namespace berth::client {

namespace {

constexpr SessionManner kSrun{
    .page = {.name = "srun",
             .operands = "COMMAND [ARGS…]",
             .summary = "run a command as a job, at this terminal; inside a job, as a step of it",
             .more = "Ctrl-C while it waits cancels the job. A session whose connection is lost is "
                     "found again with sattach for five minutes (BERTH_SESSION_GRACE).",
             .examples = "srun --gpus=1 --pty bash\nsrun --gpus=2 python3 train.py\n"
                         "srun --jobid=12 --overlap --pty bash"},
    .prefix = "SLURM_"};

/// What srun inside the job is told again: of the step and its tasks. The rest has been asked of
/// the scheduler.
constexpr std::array<std::string_view, 39> kOfTheStep{"chdir",
                                                      "cpu-bind",
                                                      "cpus-per-task",
                                                      "distribution",
                                                      "error",
                                                      "exact",
                                                      "export",
                                                      "gpu-bind",
                                                      "gpus",
                                                      "gpus-per-node",
                                                      "gpus-per-task",
                                                      "gres",
                                                      "gres-flags",
                                                      "hint",
                                                      "input",
                                                      "job-name",
                                                      "jobid",
                                                      "kill-on-bad-exit",
                                                      "label",
                                                      "mem-bind",
                                                      "mpi",
                                                      "multi-prog",
                                                      "ntasks",
                                                      "ntasks-per-core",
                                                      "ntasks-per-gpu",
                                                      "ntasks-per-node",
                                                      "ntasks-per-socket",
                                                      "open-mode",
                                                      "output",
                                                      "overcommit",
                                                      "overlap",
                                                      "preserve-env",
                                                      "pty",
                                                      "quiet",
                                                      "quit-on-interrupt",
                                                      "tasks-per-node",
                                                      "threads-per-core",
                                                      "unbuffered",
                                                      "wait"};

std::vector<std::string> step_words(const Parsed& parsed) {
  std::vector<std::string> words;
  for (const Given& given : parsed.options) {
    const std::string_view name = given.option->name;
    if (std::ranges::find(kOfTheStep, name) == kOfTheStep.end()) continue;
    const bool has_value = given.option->takes == Takes::Value || !given.value.empty();
    words.push_back(has_value ? fmt::format("--{}={}", name, given.value)
                              : fmt::format("--{}", name));
  }
  words.emplace_back("--");
  words.insert(words.end(), parsed.operands.begin(), parsed.operands.end());
  return words;
}

step::AttachOptions attach_options(const Parsed& parsed, JobNumber job) {
  step::AttachOptions options;
  options.program = kSrun.page.name;
  options.what = fmt::format("job {}", job);
  options.quits_on_interrupt = parsed.has("quit-on-interrupt") || parsed.has("disable-status");
  // Else the tasks read it themselves.
  options.input = parsed.has("input") ? step::InputUse::Ended : step::InputUse::PassedOn;
  return options;
}

int run_new_job(const Parsed& parsed, Console& console) {
  auto draft = session_draft(kSrun, srun_outside_options(), parsed);
  if (!draft) return console.complain(kMisuse, draft.error());
  const auto wait = start_wait(parsed);
  if (!wait) return console.complain(kMisuse, wait.error());
  auto scheduler = local_scheduler(draft->server, console);
  if (!scheduler) return console.complain(kMisuse, scheduler.error());
  if (draft->spec.name.empty()) draft->spec.name = last_part(parsed.operands.front());
  std::vector<std::string> host{"--as", "srun", "--"};
  if (parsed.has("pty")) host.insert(host.begin(), "--pty");
  for (std::string& word : step_words(parsed)) host.push_back(std::move(word));
  make_session(*draft, std::move(host));
  const auto job = submit_session(*scheduler, *draft, console);
  if (!job) return job.error();
  if (const auto started = await_session(*scheduler, *job, *wait, console); !started)
    return started.error();
  if (parsed.has("bell")) console.put("\a");
  auto socket = open_session(*scheduler, *job, step::kSessionSocket);
  if (!socket) {
    give_up(*scheduler, *job, "nobody could attach to it", console);
    return console.complain(kFailure, socket.error());
  }
  return attend_session(*scheduler, *job, std::move(*socket), attach_options(parsed, *job), console)
      .code;
}

/// Into a job that runs already.
int run_in_job(const Parsed& parsed, Console& console) {
  const auto number = parse_count(parsed.value("jobid"), 1, std::int64_t{1} << 62U);
  if (!number) return console.complain(kMisuse, "--jobid: " + number.error().text());
  const auto job = static_cast<JobNumber>(*number);
  auto scheduler = local_scheduler(parsed.value("server"), console);
  if (!scheduler) return console.complain(kMisuse, scheduler.error());
  const auto context = process_context();
  if (!context) return console.complain(kFailure, context.error());
  const auto directory = steps_directory(*scheduler, job);
  if (!directory) return console.complain(kFailure, directory.error());
  step::JoinRequest request;
  request.words = {"srun"};
  for (std::string& word : step_words(parsed)) request.words.push_back(std::move(word));
  request.on_terminal = parsed.has("pty");
  request.workdir = context->directory;
  const auto join = step::put_join(*directory, request);
  if (!join) return console.complain(kFailure, join.error());
  const auto asked = scheduler->send("POST", fmt::format("/jobs/{}/join", job),
                                     nlohmann::json{{"request", *join}}.dump());
  if (!asked) {
    step::drop_join(*directory, *join);
    return console.complain(kFailure, asked.error());
  }
  auto socket = open_session(*scheduler, job, step::join_socket(*join));
  if (!socket) return console.complain(kFailure, socket.error());
  return attend_session(*scheduler, job, std::move(*socket), attach_options(parsed, job), console)
      .code;
}

}  // namespace

int run_srun_outside(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(srun_outside_options().specs(), words, OperandOrder::Leading);
  if (const auto code =
          slurm::usual_answer(parsed, kSrun.page, srun_outside_options().specs(), console))
    return *code;
  if (parsed.operands.empty())
    return console.complain(kMisuse, "error: No command given to execute.");
  return parsed.has("jobid") ? run_in_job(parsed, console) : run_new_job(parsed, console);
}

}  // namespace berth::client
