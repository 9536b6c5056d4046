#include "client/submit_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "client/commands.h"
#include "client/job_file.h"
#include "client/sbatch_script.h"
#include "model/job_spec_json.h"

extern char** environ;

namespace berth::client {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxInput = 16U << 20U;

Result<std::string> read_stdin() {
  std::string text;
  std::array<char, 65'536> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), stdin)) {
    text.append(block.data(), got);
    if (text.size() > kMaxInput) return fail("standard input: too long for a script");
  }
  return text;
}

void tell(const Draft& draft, const Scheduler::SubmitAnswer& answer, Manner manner,
          Console& console) {
  const Submitted& reply = answer.reply;
  for (const std::string& note : reply.notes) console.note("note: " + note);
  if (draft.json) {
    console.put_json(answer.json);
  } else if (draft.parsable) {
    console.put(fmt::format("{}\n", reply.first));
  } else if (draft.quiet) {
    return;
  } else if (manner == Manner::Slurm) {
    console.put(fmt::format("Submitted batch job {}\n", reply.first));
  } else if (reply.is_repeat) {
    console.put(fmt::format("job {} (submitted before with this key)\n", reply.first));
  } else if (reply.count > 1) {
    console.put(fmt::format("jobs {} to {}\n", reply.first, reply.first + reply.count - 1));
  } else {
    console.put(fmt::format("job {}\n", reply.first));
  }
}

bool is_job_file(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

Result<std::vector<Draft>> drafts_of(const Call& call, const SubmitContext& context) {
  const auto& operands = call.operands();
  Draft draft;
  draft.context = context;
  if (operands.empty())
    return fail("submit: what? As in `berth submit -- python3 train.py`, a script, or a job file");
  if (call.parsed.has_separator && call.parsed.before_separator == 0) {
    draft.spec.command = operands;
    return std::vector<Draft>{std::move(draft)};
  }
  BERTH_TRY(std::string text, read_script(operands.front()));
  if (is_job_file(operands.front())) {
    if (operands.size() > 1)
      return fail(fmt::format("submit: what is '{}' behind a job file?", operands[1]));
    BERTH_TRY(auto specs, parse_job_file(text, operands.front()));
    std::vector<Draft> drafts;
    for (JobSpec& spec : specs) {
      draft.spec = std::move(spec);
      drafts.push_back(draft);
    }
    return drafts;
  }
  const std::string shown = operands.front() == "-" ? "standard input" : operands.front();
  BERTH_TRY_VOID(apply_script(draft, std::move(text), shown));
  draft.spec.command.assign(operands.begin() + 1, operands.end());
  if (draft.spec.name.empty())
    draft.spec.name = operands.front() == "-"
                          ? "stdin"
                          : std::filesystem::path(operands.front()).filename().string();
  return std::vector<Draft>{std::move(draft)};
}

}  // namespace

Result<SubmitContext> process_context() {
  SubmitContext context;
  std::error_code error;
  context.directory = std::filesystem::current_path(error).string();
  if (error) return fail(fmt::format("the working directory is gone: {}", error.message()));
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text(*one);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos && equals > 0)
      context.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  context.now = unix_now();
  return context;
}

Result<std::string> read_script(const std::string& path) {
  if (path == "-") return read_stdin();
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return fail(fmt::format("{}: a folder, not a script", path));
  if (!std::filesystem::exists(path, error))
    return fail(
        fmt::format("{}: no such script (for a command: `berth submit -- {} …`)", path, path));
  return read_file(path, {.max_bytes = kMaxInput});
}

Result<void> complete(Draft& draft) {
  BERTH_TRY_VOID(settle(draft));
  if (auto faults = problems(draft.spec); !faults.empty()) {
    Error error;
    error.messages = std::move(faults);
    return tl::unexpected<Error>(std::move(error));
  }
  return {};
}

int submit_drafts(std::vector<Draft> drafts, Manner manner, Console& console) {
  Error error;
  for (Draft& draft : drafts) {
    const auto fine = complete(draft);
    if (!fine)
      error.messages.insert(error.messages.end(), fine.error().messages.begin(),
                            fine.error().messages.end());
  }
  if (!error.messages.empty()) return console.complain(kMisuse, error);
  std::vector<JobNumber> wait_on;
  std::optional<Scheduler> scheduler;
  for (Draft& draft : drafts) {
    if (!draft.quiet)
      for (const std::string& note : draft.notes) console.note("note: " + note);
    if (draft.dry_run) {
      console.put_json(to_json(draft.spec).dump(2, ' ', false, json::error_handler_t::replace));
      continue;
    }
    if (!scheduler) {
      auto found = patient_scheduler(draft.server, console);
      if (!found) return console.complain(kMisuse, found.error());
      scheduler.emplace(*std::move(found));
    }
    const auto answer = scheduler->submit(draft.spec);
    if (!answer) return console.complain(kFailure, answer.error());
    tell(draft, *answer, manner, console);
    if (draft.wait)
      for (std::uint64_t i = 0; i < answer->reply.count; ++i)
        wait_on.push_back(answer->reply.first + i);
  }
  if (wait_on.empty()) return console.done();
  const auto jobs = wait_for(*scheduler, wait_on, console);
  if (!jobs) return console.complain(kFailure, jobs.error());
  int code = kSuccess;
  for (const JobRow& job : *jobs) code = std::max(code, exit_code_of(job));
  return code;
}

int run_submit(const Call& call) {
  const auto context = process_context();
  if (!context) return call.console.complain(kFailure, context.error());
  auto drafts = drafts_of(call, *context);
  if (!drafts) return call.console.complain(kMisuse, drafts.error());
  Error error;
  for (Draft& draft : *drafts) {
    if (!error.messages.empty()) break;  // the same options are wrong for all
    for (const OptionFault& fault : own_options().apply(draft, call.parsed))
      error.messages.push_back("submit: " + fault.text);
  }
  if (!error.messages.empty()) return call.console.complain(kMisuse, error);
  if (drafts->size() > 1 && call.has("key"))
    return call.console.complain(kMisuse, "submit: one key cannot stand for several jobs");
  return submit_drafts(*std::move(drafts), Manner::Ours, call.console);
}

}  // namespace berth::client
