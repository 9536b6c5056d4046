#include "slurm/squeue_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/split.h"
#include "slurm/gres.h"
#include "slurm/hostlist.h"
#include "slurm/numbers.h"
#include "slurm/times.h"

namespace berth::slurm {

namespace {

constexpr char kBetween = '\x1f';
constexpr char kEnd = '\x1e';

/// What a column tells of a job. One that cannot be understood says why.
using Setter = Result<void> (*)(Job&, std::string_view);
struct Column {
  std::string_view name;
  Setter set;
};

Result<void> set_nodes(std::vector<std::string>& to, std::string_view text) {
  BERTH_TRY(to, expand_hostlist(or_empty(text)));
  return {};
}

/// "3:0", exit and signal; of 22.05 the status as wait() tells it.
void set_exit(Job& job, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    set_exit_status(job, number_or<std::uint32_t>(text, 0));
    return;
  }
  job.exit_code = number_or<std::int32_t>(text.substr(0, colon), 0);
  job.signal = number_or<std::int32_t>(text.substr(colon + 1), 0);
}

// Nobody can give these a separator: Slurm makes them or checks them against what it knows.
constexpr std::array kColumns{
    Column{"JobID",
           [](Job& job, std::string_view text) -> Result<void> {
             job.key.job = number_or<std::uint32_t>(text, 0);
             if (job.key.job == 0) return fail("is no job id");
             return {};
           }},
    Column{"ArrayJobID",
           [](Job& job, std::string_view text) -> Result<void> {
             job.array = number_or<std::uint32_t>(text, 0);
             return {};
           }},
    Column{"ArrayTaskID",
           [](Job& job, std::string_view text) -> Result<void> {
             // Of a job that is no array, the array's id is its own.
             job.array_tasks = or_empty(text);
             if (job.array_tasks.empty()) job.array = 0;
             return {};
           }},
    Column{"UserID",
           [](Job& job, std::string_view text) -> Result<void> {
             job.uid = number_or<std::uint32_t>(text, UINT32_MAX);
             return {};
           }},
    Column{"UserName",
           [](Job& job, std::string_view text) -> Result<void> {
             job.user = or_empty(text);
             return {};
           }},
    Column{"Account",
           [](Job& job, std::string_view text) -> Result<void> {
             job.account = or_empty(text);
             return {};
           }},
    Column{"Partition",
           [](Job& job, std::string_view text) -> Result<void> {
             job.partition = or_empty(text);
             return {};
           }},
    Column{"QOS",
           [](Job& job, std::string_view text) -> Result<void> {
             job.qos = or_empty(text);
             return {};
           }},
    Column{"State",
           [](Job& job, std::string_view text) -> Result<void> {
             set_phase(job, text);
             return {};
           }},
    Column{"PriorityLong",
           [](Job& job, std::string_view text) -> Result<void> {
             // What is not understood must not look like a job that is held.
             job.priority = number_or<std::uint32_t>(text, 1);
             return {};
           }},
    Column{"BatchFlag",
           [](Job& job, std::string_view text) -> Result<void> {
             job.is_batch = text != "0";
             return {};
           }},
    Column{"Requeue",
           [](Job& job, std::string_view text) -> Result<void> {
             job.may_requeue = text != "0";
             return {};
           }},
    Column{"RestartCnt",
           [](Job& job, std::string_view text) -> Result<void> {
             job.key.restarts = number_or<std::uint32_t>(text, 0);
             return {};
           }},
    Column{"SubmitTime",
           [](Job& job, std::string_view text) -> Result<void> {
             job.key.submitted = parse_time(text);
             if (job.key.submitted == 0) return fail("is no time of the form 2026-11-17T03:58:43");
             return {};
           }},
    Column{"EligibleTime",
           [](Job& job, std::string_view text) -> Result<void> {
             job.eligible = parse_time(text);
             return {};
           }},
    Column{"StartTime",
           [](Job& job, std::string_view text) -> Result<void> {
             job.started = parse_time(text);
             return {};
           }},
    Column{"EndTime",
           [](Job& job, std::string_view text) -> Result<void> {
             job.ended = parse_time(text);
             return {};
           }},
    Column{"TimeLimit",
           [](Job& job, std::string_view text) -> Result<void> {
             job.time_limit = parse_span(text);
             return {};
           }},
    Column{"NumNodes",
           [](Job& job, std::string_view text) -> Result<void> {
             job.min_nodes = number_or<std::int32_t>(text, 1);
             return {};
           }},
    Column{"MaxNodes",
           [](Job& job, std::string_view text) -> Result<void> {
             job.max_nodes = number_or<std::int32_t>(text, 0);
             return {};
           }},
    Column{"NumTasks",
           [](Job& job, std::string_view text) -> Result<void> {
             job.tasks = number_or<std::int32_t>(text, 0);
             return {};
           }},
    Column{"NumCPUs",
           [](Job& job, std::string_view text) -> Result<void> {
             job.cpus = number_or<std::int32_t>(text, 0);
             return {};
           }},
    Column{"tres-per-job",
           [](Job& job, std::string_view text) -> Result<void> {
             job.per_job = parse_gres(text);
             return {};
           }},
    Column{"tres-per-node",
           [](Job& job, std::string_view text) -> Result<void> {
             job.per_node = parse_gres(text);
             return {};
           }},
    Column{"tres-per-task",
           [](Job& job, std::string_view text) -> Result<void> {
             job.per_task = parse_gres(text);
             return {};
           }},
    Column{"tres-per-socket",
           [](Job& job, std::string_view text) -> Result<void> {
             job.per_socket = parse_gres(text);
             return {};
           }},
    Column{"tres-alloc",  // before it has any: what it asks for
           [](Job& job, std::string_view text) -> Result<void> {
             job.tres_requested = or_empty(text);
             job.memory_mib = tres_mebibytes(text);
             return {};
           }},
    Column{"NodeList",
           [](Job& job, std::string_view text) -> Result<void> {
             BERTH_TRY(auto names, expand_hostlist(or_empty(text)));
             for (std::string& name : names) job.held.push_back({.node = std::move(name)});
             return {};
           }},
    Column{"ReqNodes",
           [](Job& job, std::string_view text) -> Result<void> {
             return set_nodes(job.required_nodes, text);
           }},
    Column{"exit_code",
           [](Job& job, std::string_view text) -> Result<void> {
             set_exit(job, text);
             return {};
           }},
};

// Behind them, as this version has them.
Column excluded_column() {
  return {"ExcNodes", [](Job& job, std::string_view text) -> Result<void> {
            return set_nodes(job.excluded_nodes, text);
          }};
}
Column alone_column(const SqueueColumns& columns) {
  if (columns.has_exclusive)
    return {"Exclusive", [](Job& job, std::string_view text) -> Result<void> {
              job.exclusive = text == "NODE";
              return {};
            }};
  return {"OverSubscribe", [](Job& job, std::string_view text) -> Result<void> {
            job.exclusive = text == "NO";
            return {};
          }};
}
std::vector<Column> columns_of(const SqueueForm& form) {
  std::vector<Column> columns(kColumns.begin(), kColumns.end());
  if (form.columns.has_excluded_nodes) columns.push_back(excluded_column());
  columns.push_back(alone_column(form.columns));
  return columns;
}

// What people write, behind the mark.
struct FreeColumn {
  std::string_view name;
  std::string Job::*member;
};
constexpr std::array kFreeColumns{
    FreeColumn{"Reason", &Job::reason},
    FreeColumn{"Feature", &Job::features},
    FreeColumn{"Dependency", &Job::dependency},
    FreeColumn{"Reservation", &Job::reservation},
    FreeColumn{"Comment", &Job::comment},
    FreeColumn{"admin_comment", &Job::admin_comment},
    FreeColumn{"Name", &Job::name},
};

std::vector<std::string_view> split_by(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + separator.size());
  }
}

/// Nodes of a job that is over are not held any more; before it runs it holds nothing.
void settle(Job& job) {
  const bool holds = !job.held.empty() && (job.completing || job.phase == JobPhase::Running ||
                                           job.phase == JobPhase::Suspended);
  if (!holds) {
    job.held.clear();
  } else {
    job.tres_held = job.tres_requested;
  }
  if (!is_over(job.phase)) job.ended = 0;  // squeue tells when it would have to end
}

Result<Job> parse_row(std::string_view row, const std::string& between,
                      const std::vector<Column>& columns) {
  const auto parts = split_by(row, between);
  if (parts.size() != 1 + kFreeColumns.size())
    return fail(
        fmt::format("has {} texts where {} were asked for", parts.size() - 1, kFreeColumns.size()));
  const auto fields = split(parts[0], kBetween);
  if (fields.size() != columns.size())
    return fail(
        fmt::format("has {} columns where {} were asked for", fields.size(), columns.size()));
  Job job;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (auto done = columns[i].set(job, fields[i]); !done)
      return fail(
          fmt::format("{} '{}': {}", columns[i].name, shortened(fields[i]), done.error().text()));
  for (std::size_t i = 0; i < kFreeColumns.size(); ++i)
    job.*kFreeColumns[i].member =
        &Job::name == kFreeColumns[i].member ? parts[i + 1] : or_empty(parts[i + 1]);
  settle(job);
  return job;
}

struct Word {
  std::string_view word;
  JobPhase phase;
  bool completing = false;
  bool configuring = false;
};
constexpr std::array kWords{
    Word{"PENDING", JobPhase::Pending},
    Word{"RUNNING", JobPhase::Running},
    Word{"SUSPENDED", JobPhase::Suspended},
    Word{"COMPLETED", JobPhase::Completed},
    Word{"CANCELLED", JobPhase::Cancelled},
    Word{"FAILED", JobPhase::Failed},
    Word{"TIMEOUT", JobPhase::TimedOut},
    Word{"NODE_FAIL", JobPhase::NodeFailed},
    Word{"PREEMPTED", JobPhase::Preempted},
    Word{"BOOT_FAIL", JobPhase::BootFailed},
    Word{"DEADLINE", JobPhase::Deadline},
    Word{"OUT_OF_MEMORY", JobPhase::OutOfMemory},
    Word{"COMPLETING", JobPhase::Running, true},
    Word{"STAGE_OUT", JobPhase::Running, true},
    Word{"CONFIGURING", JobPhase::Running, false, true},
    Word{"POWER_UP_NODE", JobPhase::Running, false, true},
    Word{"RESIZING", JobPhase::Running},
    Word{"SIGNALING", JobPhase::Running},
    Word{"STOPPED", JobPhase::Suspended},
    Word{"REQUEUED", JobPhase::Pending},
    Word{"REQUEUE_FED", JobPhase::Pending},
    Word{"REQUEUE_HOLD", JobPhase::Pending},
    Word{"RESV_DEL_HOLD", JobPhase::Pending},
    Word{"SPECIAL_EXIT", JobPhase::Pending},
    Word{"REVOKED", JobPhase::Cancelled},
};

}  // namespace

void set_phase(Job& job, std::string_view word) {
  const auto* found = std::ranges::find(kWords, word, &Word::word);
  const bool is_known = found != kWords.end();
  job.phase = is_known ? found->phase : JobPhase::Unknown;
  job.completing = is_known && found->completing;
  job.configuring = is_known && found->configuring;
}

void set_exit_status(Job& job, std::uint32_t status) {
  job.exit_code = static_cast<std::int32_t>((status >> 8U) & 0xffU);
  job.signal = static_cast<std::int32_t>(status & 0x7fU);
}

SqueueColumns columns_by_help(std::string_view help) {
  SqueueColumns columns = kOldColumns;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find_first_of(" \t\n", at), help.size());
    const std::string_view word = help.substr(at, end - at);
    columns.has_exclusive = columns.has_exclusive || word == "Exclusive";
    columns.has_excluded_nodes = columns.has_excluded_nodes || word == "ExcNodes";
    at = end + 1;
  }
  return columns;
}

std::string squeue_format(const SqueueForm& form) {
  std::string format;
  const std::vector<Column> columns = columns_of(form);
  for (const Column& column : columns) {
    const bool is_last = &column == &columns.back();
    format += fmt::format("{}:{}{},", column.name, kBetween, is_last ? form.mark : "");
  }
  for (const FreeColumn& column : kFreeColumns) {
    const bool is_last = &column == &kFreeColumns.back();
    format += fmt::format("{}:{}{}{}", column.name, is_last ? kEnd : kBetween, form.mark,
                          is_last ? "" : ",");
  }
  return format;
}

std::string excluded_format(std::string_view mark) {
  return fmt::format("%A{}%x{}{}", kBetween, kEnd, mark);
}

Result<std::map<std::uint32_t, std::vector<std::string>>> parse_excluded(std::string_view text,
                                                                         std::string_view mark) {
  const std::string end = kEnd + std::string(mark) + '\n';
  std::map<std::uint32_t, std::vector<std::string>> excluded;
  while (!text.empty()) {
    const std::size_t at = text.find(end);
    const std::size_t between = text.find(kBetween);
    if (at == std::string_view::npos || between > at)
      return fail("the output of squeue is cut off: '" + shortened(text) + "'");
    const auto job = number_or<std::uint32_t>(text.substr(0, between), 0);
    BERTH_TRY(auto nodes, expand_hostlist(or_empty(text.substr(between + 1, at - between - 1))));
    if (job != 0 && !nodes.empty()) excluded.insert_or_assign(job, std::move(nodes));
    text.remove_prefix(at + end.size());
  }
  return excluded;
}

Result<std::vector<Job>> parse_squeue(std::string_view text, const SqueueForm& form) {
  const std::string between = kBetween + form.mark;
  const std::string end = kEnd + form.mark + '\n';
  const std::vector<Column> columns = columns_of(form);
  std::vector<Job> jobs;
  while (!text.empty()) {
    const std::size_t at = text.find(end);
    if (at == std::string_view::npos)
      return fail("the output of squeue is cut off, or its columns are not those asked for: '" +
                  shortened(text) + "'");
    auto job = parse_row(text.substr(0, at), between, columns);
    if (!job) return fail(fmt::format("squeue: row {} {}", jobs.size() + 1, job.error().text()));
    jobs.push_back(std::move(*job));
    text.remove_prefix(at + end.size());
  }
  std::ranges::sort(jobs, {}, &Job::key);
  return jobs;
}

}  // namespace berth::slurm
