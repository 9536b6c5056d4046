#include "client/slurm/queue_columns.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "client/moment.h"

namespace berth::client::slurm {

namespace {

/// A value that is worked out, or what Slurm prints where the thing is not set.
template <class Item>
struct Column {
  ColumnName name;
  std::string (*value)(const Item&) = nullptr;
  std::string_view unset = {};
};

bool holds(const QueueItem& i) { return !is_waiting(i.job.state) && !i.job.where.empty(); }

std::string or_null(const std::string& text) { return text.empty() ? "(null)" : text; }

std::string cpus(const QueueItem& i) {
  return fmt::to_string(holds(i) ? allocated(i.job, i.types).cpus : requested(i.job).cpus);
}

std::string cpus_per_task(const QueueItem& i) {
  return fmt::to_string(std::max(1, requested(i.job).cpus / tasks_of(i.job)));
}

std::string time_limit(const QueueItem& i) {
  const std::int64_t limit = i.job.spec->time_limit;
  return limit > 0 ? clock_span(static_cast<double>(limit)) : "UNLIMITED";
}

std::string time_left(const QueueItem& i) {
  if (i.job.spec->time_limit <= 0) return "UNLIMITED";
  return clock_span(static_cast<double>(i.job.spec->time_limit) - elapsed_of(i.job, i.now));
}

std::string pending_seconds(const QueueItem& i) {
  const std::int64_t until = i.job.started > 0 ? i.job.started : i.now * 1'000'000;
  return fmt::to_string(std::max<std::int64_t>(0, until - i.job.submitted) / 1'000'000);
}

std::string gres(const QueueItem& i) {
  const std::string text = gres_request(i.job.spec->gpus, i.job.spec->gpu_type);
  return text.empty() ? "N/A" : text;
}

double step_seconds(const StepItem& i) {
  const std::int64_t end = i.step.ended > 0 ? i.step.ended : i.now * 1'000'000;
  return static_cast<double>(std::max<std::int64_t>(0, end - i.step.begun)) / 1e6;
}

using JobColumn = Column<QueueItem>;
using StepColumn = Column<StepItem>;

// clang-format off
constexpr std::array kJobColumns{
    JobColumn{{"account", 'a', "ACCOUNT"}, [](const QueueItem& i) -> std::string { return account_name(i.job); }},
    JobColumn{{"accruetime", 0, "ACCRUE_TIME"}, [](const QueueItem& i) -> std::string { return moment_or(eligible_of(i.job), "N/A"); }},
    JobColumn{{"admin_comment", 0, "ADMIN_COMMENT"}, nullptr, "(null)"},
    JobColumn{{"allocnodes", 0, "ALLOC_NODES"}, nullptr, "N/A"},
    JobColumn{{"allocsid", 0, "ALLOC_SID"}, nullptr, "0"},
    JobColumn{{"arrayjobid", 'F', "ARRAY_JOB_ID"}, [](const QueueItem& i) -> std::string { return fmt::to_string(i.job.array != 0 ? i.job.array : i.job.number); }},
    JobColumn{{"arraytaskid", 'K', "ARRAY_TASK_ID"}, [](const QueueItem& i) -> std::string { return !i.indices.empty() ? i.indices : i.job.array != 0 ? fmt::to_string(i.job.array_index) : "N/A"; }},
    JobColumn{{"associd", 0, "ASSOC_ID"}, nullptr, "0"},
    JobColumn{{"batchflag", 0, "BATCH_FLAG"}, nullptr, "1"},
    JobColumn{{"batchhost", 'B', "EXEC_HOST"}, [](const QueueItem& i) -> std::string { return holds(i) ? i.job.where.front().node : "n/a"; }},
    JobColumn{{"boardspernode", 0, "BOARDS_PER_NODE"}, nullptr, "0"},
    JobColumn{{"burstbuffer", 0, "BURST_BUFFER"}, nullptr, "(null)"},
    JobColumn{{"burstbufferstate", 0, "BURST_BUFFER_STATE"}, nullptr, "(null)"},
    JobColumn{{"cluster", 0, "CLUSTER"}, [](const QueueItem& i) -> std::string { return i.cluster; }},
    JobColumn{{"clusterfeature", 0, "CLUSTER_FEATURES"}, nullptr, "(null)"},
    JobColumn{{"command", 'o', "COMMAND"}, [](const QueueItem& i) -> std::string { return or_null(command_of(i.job)); }},
    JobColumn{{"comment", 'k', "COMMENT"}, [](const QueueItem& i) -> std::string { return or_null(i.job.spec->comment); }},
    JobColumn{{"container", 0, "CONTAINER"}, nullptr, "(null)"},
    JobColumn{{"containerid", 0, "CONTAINERID"}, nullptr, "(null)"},
    JobColumn{{"contiguous", 'O', "CONTIGUOUS"}, nullptr, "0"},
    JobColumn{{"cores", 'I', "CORES_PER_SOCKET"}, nullptr, "*"},
    JobColumn{{"corespec", 'X', "CORE_SPEC"}, nullptr, "N/A"},
    JobColumn{{"cpuspertask", 0, "CPUS_PER_TASK"}, [](const QueueItem& i) -> std::string { return cpus_per_task(i); }},
    JobColumn{{"cpus-per-task", 0, "CPUS_PER_TASK"}, [](const QueueItem& i) -> std::string { return cpus_per_task(i); }},
    JobColumn{{"cpus-per-tres", 0, "CPUS_PER_TRES"}, nullptr, "N/A"},
    JobColumn{{"deadline", 0, "DEADLINE"}, [](const QueueItem& i) -> std::string { return moment_or(i.job.spec->deadline.value_or(0) * 1'000'000, "N/A"); }},
    JobColumn{{"delayboot", 0, "DELAY_BOOT"}, nullptr, "0:00"},
    JobColumn{{"dependency", 'E', "DEPENDENCY"}, [](const QueueItem& i) -> std::string { return or_null(to_text(i.job.spec->dependencies, i.job.spec->any_dependency)); }},
    JobColumn{{"derivedec", 0, "DERIVED_EC"}, [](const QueueItem& i) -> std::string { return exit_pair(shown_exit(i.job).code, 0); }},
    JobColumn{{"eligibletime", 0, "ELIGIBLE_TIME"}, [](const QueueItem& i) -> std::string { return moment_or(eligible_of(i.job), "N/A"); }},
    JobColumn{{"endtime", 'e', "END_TIME"}, [](const QueueItem& i) -> std::string { return moment_or(end_of(i.job, i.now), "N/A"); }},
    JobColumn{{"excnodes", 'x', "EXC_NODES"}, nullptr, ""},
    JobColumn{{"exit_code", 0, "EXIT_CODE"}, [](const QueueItem& i) -> std::string { return exit_pair(shown_exit(i.job).code, shown_exit(i.job).signal); }},
    JobColumn{{"feature", 'f', "FEATURES"}, nullptr, "(null)"},
    JobColumn{{"groupid", 'G', "GROUP"}, [](const QueueItem& i) -> std::string { return account_of(i.job.spec->user).gid; }},
    JobColumn{{"groupname", 'g', "GROUP"}, [](const QueueItem& i) -> std::string { return account_of(i.job.spec->user).group; }},
    JobColumn{{"hetjobid", 0, "HET_JOB_ID"}, nullptr, "N/A"},
    JobColumn{{"hetjobidset", 0, "HET_JOB_ID_SET"}, nullptr, "N/A"},
    JobColumn{{"hetjoboffset", 0, "HET_JOB_OFFSET"}, nullptr, "N/A"},
    JobColumn{{"jobarrayid", 'i', "JOBID"}, [](const QueueItem& i) -> std::string { return shown_id(i.job, i.indices); }},
    JobColumn{{"jobid", 'A', "JOBID"}, [](const QueueItem& i) -> std::string { return fmt::to_string(i.indices.empty() ? i.job.number : i.job.array); }},
    JobColumn{{"lastschedeval", 0, "LAST_SCHED_EVAL"}, nullptr, "N/A"},
    JobColumn{{"licenses", 'W', "LICENSES"}, nullptr, "(null)"},
    JobColumn{{"maxcpus", 0, "MAX_CPUS"}, [](const QueueItem& i) -> std::string { return cpus(i); }},
    JobColumn{{"maxnodes", 0, "MAX_NODES"}, nullptr, "1"},
    JobColumn{{"mem-per-tres", 0, "MEM_PER_TRES"}, nullptr, "N/A"},
    JobColumn{{"mcslabel", 0, "MCSLABEL"}, nullptr, "(null)"},
    JobColumn{{"mincpus", 'c', "MIN_CPUS"}, [](const QueueItem& i) -> std::string { return fmt::to_string(requested(i.job).cpus); }},
    JobColumn{{"minmemory", 'm', "MIN_MEMORY"}, [](const QueueItem& i) -> std::string { return amount(static_cast<double>(i.job.spec->memory_mib), 'M'); }},
    JobColumn{{"mintime", 0, "TIME_MIN"}, nullptr, "0:00"},
    JobColumn{{"mintmpdisk", 'd', "MIN_TMP_DISK"}, nullptr, "0"},
    JobColumn{{"name", 'j', "NAME"}, [](const QueueItem& i) -> std::string { return name_of(i.job, i.indices); }},
    JobColumn{{"network", 0, "NETWORK"}, nullptr, "(null)"},
    JobColumn{{"nice", 'y', "NICE"}, [](const QueueItem& i) -> std::string { return fmt::to_string(-std::min(0, i.job.spec->priority)); }},
    JobColumn{{"nodelist", 'N', "NODELIST"}, [](const QueueItem& i) -> std::string { return holds(i) ? nodes_of(i.job) : ""; }},
    JobColumn{{"ntpercore", 0, "NTASKS_PER_CORE"}, nullptr, "N/A"},
    JobColumn{{"ntpernode", 0, "NTASKS_PER_NODE"}, [](const QueueItem& i) -> std::string { return fmt::to_string(tasks_of(i.job)); }},
    JobColumn{{"ntpersocket", 0, "NTASKS_PER_SOCKET"}, nullptr, "N/A"},
    JobColumn{{"ntperboard", 0, "NTASKS_PER_BOARD"}, nullptr, "0"},
    JobColumn{{"numcpus", 'C', "CPUS"}, [](const QueueItem& i) -> std::string { return cpus(i); }},
    JobColumn{{"numnodes", 'D', "NODES"}, [](const QueueItem& i) -> std::string { return fmt::to_string(std::max<std::size_t>(1, i.job.where.size())); }},
    JobColumn{{"numtasks", 0, "TASKS"}, [](const QueueItem& i) -> std::string { return fmt::to_string(tasks_of(i.job)); }},
    JobColumn{{"origin", 0, "ORIGIN"}, nullptr, "NA"},
    JobColumn{{"originraw", 0, "ORIGIN_RAW"}, nullptr, "NA"},
    JobColumn{{"oversubscribe", 'h', "OVER_SUBSCRIBE"}, [](const QueueItem& i) -> std::string { return i.job.spec->exclusive ? "NO" : "OK"; }},
    JobColumn{{"partition", 'P', "PARTITION"}, [](const QueueItem& i) -> std::string { return partition_of(i.job); }},
    JobColumn{{"pendingtime", 0, "PENDING_TIME"}, [](const QueueItem& i) -> std::string { return pending_seconds(i); }},
    JobColumn{{"preempttime", 0, "PREEMPT_TIME"}, nullptr, "N/A"},
    JobColumn{{"prefer", 0, "PREFER"}, nullptr, "(null)"},
    JobColumn{{"priority", 'p', "PRIORITY"}, [](const QueueItem& i) -> std::string { return fmt::to_string(i.job.spec->priority); }},
    JobColumn{{"prioritylong", 'Q', "PRIORITY"}, [](const QueueItem& i) -> std::string { return fmt::to_string(i.job.spec->priority); }},
    JobColumn{{"profile", 0, "PROFILE"}, nullptr, "NotSet"},
    JobColumn{{"qos", 'q', "QOS"}, nullptr, kQos},
    JobColumn{{"reason", 'r', "REASON"}, [](const QueueItem& i) -> std::string { return slurm_reason(i.job); }},
    JobColumn{{"reasonlist", 'R', "NODELIST(REASON)"}, [](const QueueItem& i) -> std::string { return holds(i) ? nodes_of(i.job) : fmt::format("({})", slurm_reason(i.job)); }},
    JobColumn{{"reboot", 0, "REBOOT"}, nullptr, "0"},
    JobColumn{{"reqnodes", 'n', "REQ_NODES"}, [](const QueueItem& i) -> std::string { return folded_hosts(i.job.spec->nodes); }},
    JobColumn{{"reqswitch", 0, "REQ_SWITCH"}, nullptr, "0"},
    JobColumn{{"requeue", 0, "REQUEUE"}, [](const QueueItem& i) -> std::string { return i.job.spec->requeue ? "1" : "0"; }},
    JobColumn{{"reservation", 'v', "RESERVATION"}, nullptr, "(null)"},
    JobColumn{{"resizetime", 0, "RESIZE_TIME"}, nullptr, "N/A"},
    JobColumn{{"restartcnt", 0, "RESTART_COUNT"}, [](const QueueItem& i) -> std::string { return fmt::to_string(std::max(0, i.job.attempts - 1)); }},
    JobColumn{{"schednodes", 'Y', "SCHEDNODES"}, nullptr, "(null)"},
    JobColumn{{"sct", 'z', "S:C:T"}, nullptr, "*:*:*"},
    JobColumn{{"siblingsactive", 0, "ACTIVE_SIBLINGS"}, nullptr, "NA"},
    JobColumn{{"siblingsactiveraw", 0, "ACTIVE_SIBLINGS_RAW"}, nullptr, "NA"},
    JobColumn{{"siblingsviable", 0, "VIABLE_SIBLINGS"}, nullptr, "NA"},
    JobColumn{{"siblingsviableraw", 0, "VIABLE_SIBLINGS_RAW"}, nullptr, "NA"},
    JobColumn{{"sockets", 'H', "SOCKETS_PER_NODE"}, nullptr, "*"},
    JobColumn{{"sperboard", 0, "SOCKETS_PER_BOARD"}, nullptr, "0"},
    JobColumn{{"starttime", 'S', "START_TIME"}, [](const QueueItem& i) -> std::string { return moment_or(start_of(i.job), "N/A"); }},
    JobColumn{{"state", 'T', "STATE"}, [](const QueueItem& i) -> std::string { return std::string(slurm_name(i.job.state)); }},
    JobColumn{{"statecompact", 't', "ST"}, [](const QueueItem& i) -> std::string { return std::string(slurm_code(i.job.state)); }},
    JobColumn{{"stderr", 0, "STDERR"}, [](const QueueItem& i) -> std::string { return or_null(i.job.error); }},
    JobColumn{{"stdin", 0, "STDIN"}, [](const QueueItem& i) -> std::string { return i.job.spec->input.empty() ? "/dev/null" : i.job.spec->input; }},
    JobColumn{{"stdout", 0, "STDOUT"}, [](const QueueItem& i) -> std::string { return or_null(i.job.output); }},
    JobColumn{{"submittime", 'V', "SUBMIT_TIME"}, [](const QueueItem& i) -> std::string { return moment_or(i.job.submitted, "N/A"); }},
    JobColumn{{"system_comment", 0, "SYSTEM_COMMENT"}, nullptr, "(null)"},
    JobColumn{{"threads", 'J', "THREADS_PER_CORE"}, nullptr, "*"},
    JobColumn{{"timeleft", 'L', "TIME_LEFT", true}, [](const QueueItem& i) -> std::string { return time_left(i); }},
    JobColumn{{"timelimit", 'l', "TIME_LIMIT", true}, [](const QueueItem& i) -> std::string { return time_limit(i); }},
    JobColumn{{"timeused", 'M', "TIME", true}, [](const QueueItem& i) -> std::string { return clock_span(elapsed_of(i.job, i.now)); }},
    JobColumn{{"tres-alloc", 0, "TRES_ALLOC"}, [](const QueueItem& i) -> std::string { return tres(holds(i) ? allocated(i.job, i.types) : requested(i.job), TresOrder::Table); }},
    JobColumn{{"tres-bind", 0, "TRES_BIND"}, nullptr, "N/A"},
    JobColumn{{"tres-freq", 0, "TRES_FREQ"}, nullptr, "N/A"},
    JobColumn{{"tres-per-job", 0, "TRES_PER_JOB"}, nullptr, "N/A"},
    JobColumn{{"tres-per-node", 'b', "TRES_PER_NODE"}, [](const QueueItem& i) -> std::string { return gres(i); }},
    JobColumn{{"gres", 0, "TRES_PER_NODE"}, [](const QueueItem& i) -> std::string { return gres(i); }},
    JobColumn{{"tres-per-socket", 0, "TRES_PER_SOCKET"}, nullptr, "N/A"},
    JobColumn{{"tres-per-task", 0, "TRES_PER_TASK"}, nullptr, "N/A"},
    JobColumn{{"userid", 'U', "UID"}, [](const QueueItem& i) -> std::string { return account_of(i.job.spec->user).uid; }},
    JobColumn{{"username", 'u', "USER"}, [](const QueueItem& i) -> std::string { return i.job.spec->user; }},
    JobColumn{{"wait4switch", 0, "WAIT4SWITCH"}, nullptr, "0:00"},
    JobColumn{{"wckey", 'w', "WCKEY"}, nullptr, "(null)"},
    JobColumn{{"workdir", 'Z', "WORK_DIR"}, [](const QueueItem& i) -> std::string { return i.job.spec->workdir; }},
};
constexpr std::array kStepColumns{
    StepColumn{{"stepid", 'i', "STEPID"}, [](const StepItem& i) -> std::string { return fmt::format("{}.{}", i.job.slurm_id(), i.step.id); }},
    StepColumn{{"stepname", 'j', "NAME"}, [](const StepItem& i) -> std::string { return i.step.name; }},
    StepColumn{{"partition", 'P', "PARTITION"}, [](const StepItem& i) -> std::string { return partition_of(i.job); }},
    StepColumn{{"username", 'u', "USER"}, [](const StepItem& i) -> std::string { return i.job.spec->user; }},
    StepColumn{{"userid", 'U', "UID"}, [](const StepItem& i) -> std::string { return account_of(i.job.spec->user).uid; }},
    StepColumn{{"timeused", 'M', "TIME", true}, [](const StepItem& i) -> std::string { return clock_span(step_seconds(i)); }},
    StepColumn{{"timelimit", 'l', "TIME_LIMIT", true}, nullptr, "UNLIMITED"},
    StepColumn{{"nodes", 'N', "NODELIST"}, [](const StepItem& i) -> std::string { return nodes_of(i.job); }},
    StepColumn{{"numtasks", 'A', "TASKS"}, [](const StepItem& i) -> std::string { return fmt::to_string(i.step.tasks); }},
    StepColumn{{"numcpus", 'C', "CPUS"}, [](const StepItem& i) -> std::string { return fmt::to_string(i.step.cpus); }},
    StepColumn{{"starttime", 'S', "START_TIME"}, [](const StepItem& i) -> std::string { return moment_or(i.step.begun, "N/A"); }},
    StepColumn{{"tres-per-job", 'b', "TRES_PER_JOB"}, [](const StepItem& i) -> std::string { return or_null(gres_request(static_cast<std::int32_t>(i.step.devices.size()), "")); }},
    StepColumn{{"jobid", 0, "JOBID"}, [](const StepItem& i) -> std::string { return fmt::to_string(i.job.number); }},
    StepColumn{{"jobarrayid", 0, "JOBID"}, [](const StepItem& i) -> std::string { return i.job.slurm_id(); }},
    StepColumn{{"arrayjobid", 0, "ARRAY_JOB_ID"}, [](const StepItem& i) -> std::string { return fmt::to_string(i.job.array != 0 ? i.job.array : i.job.number); }},
    StepColumn{{"arraytaskid", 0, "ARRAY_TASK_ID"}, [](const StepItem& i) -> std::string { return i.job.array != 0 ? fmt::to_string(i.job.array_index) : "N/A"; }},
    StepColumn{{"stepstate", 0, "STATE"}, [](const StepItem& i) -> std::string { return std::string(state_word(i.step.state)); }},
    StepColumn{{"state", 'T', "STATE"}, [](const StepItem& i) -> std::string { return std::string(state_word(i.step.state)); }},
    StepColumn{{"batchhost", 0, "EXEC_HOST"}, [](const StepItem& i) -> std::string { return nodes_of(i.job); }},
    StepColumn{{"network", 0, "NETWORK"}, nullptr, "(null)"},
};
// clang-format on

template <class Columns>
constexpr auto names_of(const Columns& columns) {
  std::array<ColumnName, std::tuple_size_v<Columns>> names{};
  for (std::size_t i = 0; i < columns.size(); ++i) names[i] = columns[i].name;
  return names;
}
constexpr auto kJobNames = names_of(kJobColumns);
constexpr auto kStepNames = names_of(kStepColumns);

template <class Item>
std::string value_in(const Column<Item>& column, const Item& item) {
  return column.value != nullptr ? column.value(item) : std::string(column.unset);
}

}  // namespace

std::span<const ColumnName> queue_columns() { return kJobNames; }
std::string queue_value(const QueueItem& item, std::size_t column) {
  return value_in(kJobColumns[column], item);
}
std::span<const ColumnName> step_columns() { return kStepNames; }
std::string step_value(const StepItem& item, std::size_t column) {
  return value_in(kStepColumns[column], item);
}

}  // namespace berth::client::slurm
