#include "client/submit_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
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
    console.put(draft.cluster.empty() ? fmt::format("{}\n", reply.first)
                                      : fmt::format("{};{}\n", reply.first, draft.cluster));
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

std::string slurm_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return text.data();
}

/// Slurm's sentence, as far as it is known. A time is told only if it starts now, or not before
/// then by its own wish: when others make way nobody knows.
void tell_test(const Draft& draft, const Scheduler::TestAnswer& answer, Manner manner,
               Console& console) {
  const Foreseen& seen = answer.seen;
  for (const std::string& note : seen.notes) console.note("note: " + note);
  if (draft.json) {
    console.put_json(answer.json);
    return;
  }
  std::string where = fmt::format("using {} processors", std::max(seen.cpus, 1));
  if (!seen.nodes.empty()) where += fmt::format(" on nodes {}", fmt::join(seen.nodes, ","));
  where += fmt::format(" in partition {}", seen.queue);
  std::string line;
  const bool has_time = seen.reasons.size() == 1 && seen.reasons.front().until;
  if (seen.starts_now || has_time)
    line = fmt::format("Job {} to start at {} {}", seen.job,
                       slurm_time(has_time ? *seen.reasons.front().until / 1'000'000 : unix_now()),
                       where);
  else
    line = fmt::format("Job {} would wait {}: {}", seen.job, where, seen.summary);
  if (manner == Manner::Slurm)
    console.note(line);
  else
    console.put(line + "\n");
  for (std::size_t i = has_time || seen.starts_now ? seen.reasons.size() : 1;
       i < seen.reasons.size(); ++i)
    console.note("and " + seen.reasons[i].text);
  if (seen.place > 0 && !seen.starts_now)
    console.note(fmt::format("it would be {} of {} that wait", seen.place, seen.of));
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
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) context.host = host;
  const mode_t mask = ::umask(0);  // the only way to ask is to set it
  ::umask(mask);
  context.umask = fmt::format("{:04o}", mask & 0777U);
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
    if (draft.test_only) {
      const auto tested = scheduler->test(draft.spec);
      if (!tested) return console.complain(kFailure, tested.error());
      tell_test(draft, *tested, manner, console);
      continue;
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
