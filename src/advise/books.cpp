#include "advise/books.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/split.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "slurm/process.h"

namespace berth::advise {

namespace {

enum Column : std::size_t {
  kJobId,
  kRawId,
  kUser,
  kUid,
  kAccount,
  kPartition,
  kQos,
  kState,
  kExitCode,
  kSubmit,
  kEligible,
  kStart,
  kEnd,
  kTimeLimit,
  kAsked,
  kHeld,
  kNodes,
  kCpus,
  kName,
  kColumns
};

constexpr std::chrono::milliseconds kPatience{30'000};
constexpr std::size_t kMostBytes = 64U << 20U;

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "Unknown" and "None" are not yet.
std::int64_t moment(std::string_view text) { return number_in<std::int64_t>(text).value_or(0); }

struct StateWord {
  std::string_view word;
  slurm::JobPhase phase;
};
constexpr std::array kStates{
    StateWord{"COMPLETED", slurm::JobPhase::Completed},
    StateWord{"CANCELLED", slurm::JobPhase::Cancelled},
    StateWord{"FAILED", slurm::JobPhase::Failed},
    StateWord{"TIMEOUT", slurm::JobPhase::TimedOut},
    StateWord{"NODE_FAIL", slurm::JobPhase::NodeFailed},
    StateWord{"PREEMPTED", slurm::JobPhase::Preempted},
    StateWord{"BOOT_FAIL", slurm::JobPhase::BootFailed},
    StateWord{"DEADLINE", slurm::JobPhase::Deadline},
    StateWord{"OUT_OF_MEMORY", slurm::JobPhase::OutOfMemory},
};

/// "CANCELLED by 5" is one state, with who did it behind.
std::optional<slurm::JobPhase> phase_in(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  const auto found = std::ranges::find(kStates, word, &StateWord::word);
  if (found == kStates.end()) return std::nullopt;
  return found->phase;
}

/// "2:9": the exit code and the signal.
void read_exit(std::string_view text, slurm::Job& job) {
  const std::size_t colon = text.find(':');
  job.exit_code = number_in<std::int32_t>(text.substr(0, colon)).value_or(0);
  if (colon == std::string_view::npos) return;
  job.signal = number_in<std::int32_t>(text.substr(colon + 1)).value_or(0);
}

/// "7_3" of an array; those that never started are "7_[1-4]".
void read_id(std::string_view text, slurm::Job& job) {
  const std::size_t underscore = text.find('_');
  if (underscore == std::string_view::npos) return;
  job.array = number_in<std::uint32_t>(text.substr(0, underscore)).value_or(0);
  std::string_view tasks = text.substr(underscore + 1);
  if (tasks.starts_with('[') && tasks.ends_with(']')) tasks = tasks.substr(1, tasks.size() - 2);
  job.array_tasks = tasks;
}

std::vector<std::string_view> fields_of(std::string_view line, std::string_view separator) {
  std::vector<std::string_view> fields;
  std::size_t begin = 0;
  while (fields.size() + 1 < kColumns) {
    const std::size_t end = line.find(separator, begin);
    if (end == std::string_view::npos) break;
    fields.push_back(line.substr(begin, end - begin));
    begin = end + separator.size();
  }
  fields.push_back(line.substr(begin));
  return fields;
}

std::optional<slurm::Job> job_in(std::string_view line, std::string_view separator) {
  const auto fields = fields_of(line, separator);
  if (fields.size() != kColumns) return std::nullopt;  // the rest of a name with a line's end
  const auto id = number_in<std::uint32_t>(fields[kRawId]);
  const auto phase = phase_in(fields[kState]);
  if (!id || !phase) return std::nullopt;
  slurm::Job job;
  job.key = {.job = *id, .restarts = 0, .submitted = moment(fields[kSubmit])};
  read_id(fields[kJobId], job);
  job.user = fields[kUser];
  job.uid = number_in<std::uint32_t>(fields[kUid]).value_or(0);
  job.account = fields[kAccount];
  job.partition = fields[kPartition];
  job.qos = fields[kQos];
  job.phase = *phase;
  if (fields[kState].starts_with("CANCELLED by"))
    job.reason = "cancelled by uid " + std::string{fields[kState].substr(13)};
  read_exit(fields[kExitCode], job);
  job.eligible = moment(fields[kEligible]);
  job.started = moment(fields[kStart]);
  job.ended = moment(fields[kEnd]);
  job.time_limit = number_in<std::int64_t>(fields[kTimeLimit]).value_or(0) * 60;
  job.tres_requested = fields[kAsked];
  job.tres_held = fields[kHeld];
  job.cpus = number_in<std::int32_t>(fields[kCpus]).value_or(0);
  job.memory_mib = slurm::tres_mebibytes(job.tres_requested);
  job.name = fields[kName];
  const auto nodes = slurm::expand_hostlist(fields[kNodes]);
  if (nodes && job.started > 0 && fields[kNodes].find("None assigned") == std::string_view::npos)
    for (const std::string& node : *nodes) job.held.push_back({.node = node});
  return job;
}

/// So that nobody can call a job like the rest of a line.
std::string unguessable() {
  std::random_device device;
  return fmt::format("<{:08x}{:08x}>", device(), device());
}

}  // namespace

std::string_view sacct_columns() noexcept {
  return "JobID,JobIDRaw,User,UID,Account,Partition,QOS,State,ExitCode,Submit,Eligible,Start,End,"
         "TimelimitRaw,ReqTRES,AllocTRES,NodeList,NCPUS,JobName";
}

std::vector<slurm::Job> read_sacct(std::string_view text, std::string_view separator) {
  std::vector<slurm::Job> jobs;
  for (const std::string_view line : split(text, '\n')) {
    auto job = job_in(line, separator);
    if (job) jobs.push_back(*std::move(job));
  }
  return jobs;
}

Result<std::string> CommandBooks::ask(std::vector<std::string> words) {
  if (!commands_.empty()) words.front() = commands_ + "/" + words.front();
  const slurm::Outcome said =
      slurm::run_command({.words = words,
                          .environment = {{"SLURM_TIME_FORMAT", "%s"}, {"LC_ALL", "C"}},
                          // Somebody's own choice of columns is no part of the question.
                          .without = {"SACCT_", "SQUEUE_", "SINFO_"}},
                         {.time = kPatience, .output_bytes = kMostBytes});
  const std::string& name = words.front();
  switch (said.ending) {
    case slurm::Ending::NotStarted: return fail(fmt::format("{}: there is no such command", name));
    case slurm::Ending::OutOfTime:
      return fail(fmt::format("{}: no answer within {} s", name, kPatience.count() / 1000));
    case slurm::Ending::TooMuch: return fail(fmt::format("{}: said too much", name));
    case slurm::Ending::Killed: return fail(fmt::format("{}: was killed", name));
    case slurm::Ending::Exited: break;
  }
  if (said.code == 0) return said.out;
  return fail(fmt::format("{}: {}", name, said.error.substr(0, said.error.find('\n'))));
}

Result<std::vector<slurm::Job>> CommandBooks::ended(const PastSpan& span) {
  const std::string separator = unguessable();
  const auto at = [](std::int64_t seconds) { return fmt::format("uts{}", seconds); };
  std::vector<std::string> words{"sacct", "-X",
                                 "-n",    "-P",
                                 "-a",    "--delimiter=" + separator,
                                 "-o",    std::string{sacct_columns()},
                                 "-S",    at(span.from),
                                 "-E",    at(span.until)};
  if (span.user) words.push_back("--user=" + *span.user);
  if (span.account) words.push_back("--accounts=" + *span.account);
  if (span.partition) words.push_back("--partition=" + *span.partition);
  if (span.name) words.push_back("--name=" + *span.name);
  if (!span.jobs.empty()) words.push_back(fmt::format("--jobs={}", fmt::join(span.jobs, ",")));
  BERTH_TRY(const std::string text, ask(std::move(words)));
  auto jobs = read_sacct(text, separator);
  std::erase_if(jobs, [&](const slurm::Job& job) {
    return job.ended < span.from || job.ended >= span.until;
  });
  return jobs;
}

Result<std::string> CommandBooks::limits(const LimitHolder& holder) {
  std::vector<std::string> words{"scontrol", "show", "assoc_mgr", "flags=assoc,qos"};
  if (!holder.user.empty()) words.push_back("users=" + holder.user);
  if (!holder.account.empty()) words.push_back("accounts=" + holder.account);
  if (!holder.qos.empty()) words.push_back("qos=" + holder.qos);
  return ask(std::move(words));
}

}  // namespace berth::advise
