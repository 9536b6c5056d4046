// salloc: a job that holds resources, and a shell (or a command) inside it.
#include <cstdlib>

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "client/interactive/interactive.h"
#include "client/interactive/session_job.h"
#include "client/interactive/session_options.h"
#include "client/interactive/session_words.h"
#include "step/session.h"

namespace berth::client {

namespace {

constexpr SessionManner kSalloc{
    .page = {.name = "salloc",
             .operands = "[COMMAND [ARGS…]]",
             .summary = "ask for resources, and run a shell or a command that has them",
             .more = "The shell runs inside the job: what is left when it ends is ended with it. A "
                     "session whose connection is lost is found again with sattach.",
             .examples = "salloc --gpus=1 --time=2:00:00\nsalloc --gpus=2 make train\n"
                         "salloc --no-shell --gpus=1"},
    .prefix = "SALLOC_"};

std::string own_shell() {
  if (const char* shell = std::getenv("SHELL"); shell != nullptr && *shell != 0) return shell;
  const passwd* entry = ::getpwuid(::getuid());
  if (entry != nullptr && entry->pw_shell != nullptr && *entry->pw_shell != 0)
    return entry->pw_shell;
  return "/bin/sh";
}

std::vector<std::string> host_words(const Parsed& parsed) {
  if (parsed.has("no-shell")) return {"--hold"};
  std::vector<std::string> words{"--"};
  if (::isatty(0) == 1 && ::isatty(1) == 1) words.insert(words.begin(), "--pty");
  words.insert(words.end(), parsed.operands.begin(), parsed.operands.end());
  if (parsed.operands.empty()) words.push_back(own_shell());
  return words;
}

int attend_allocation(Scheduler& scheduler, JobNumber job, bool is_quiet, Console& console) {
  auto socket = open_session(scheduler, job, step::kSessionSocket);
  if (!socket) {
    give_up(scheduler, job, "nobody could attach to it", console);
    return console.complain(kFailure, socket.error());
  }
  step::AttachOptions options;
  options.program = kSalloc.page.name;
  options.what = fmt::format("job {}", job);
  const Attended end = attend_session(scheduler, job, std::move(*socket), options, console);
  if (!end.goes_on && !is_quiet) console.note(fmt::format("Relinquishing job allocation {}", job));
  return end.code;
}

}  // namespace

int run_salloc(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(salloc_options().specs(), words, OperandOrder::Leading);
  if (const auto code =
          slurm::usual_answer(parsed, kSalloc.page, salloc_options().specs(), console))
    return *code;
  auto draft = session_draft(kSalloc, salloc_options(), parsed);
  if (!draft) return console.complain(kMisuse, draft.error());
  const auto wait = start_wait(parsed);
  if (!wait) return console.complain(kMisuse, wait.error());
  auto scheduler = local_scheduler(draft->server, console);
  if (!scheduler) return console.complain(kMisuse, scheduler.error());
  if (draft->spec.name.empty()) draft->spec.name = "interactive";
  make_session(*draft, host_words(parsed));
  const bool is_quiet = draft->quiet;
  const auto job = submit_session(*scheduler, *draft, console);
  if (!job) return job.error();
  if (const auto started = await_session(*scheduler, *job, *wait, console); !started)
    return started.error();
  if (!is_quiet) console.note(fmt::format("Granted job allocation {}", *job));
  if (parsed.has("bell")) console.put("\a");
  if (parsed.has("no-shell")) return kSuccess;
  return attend_allocation(*scheduler, *job, is_quiet, console);
}

}  // namespace berth::client
