#include "client/slurm/sacct_fields.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace berth::client::slurm {

namespace {

double elapsed(const AccountRow& r, const AccountFacts& f) {
  // No step runs longer than its job, which may have been suspended.
  if (r.step != nullptr) return std::min(step_seconds(*r.step, f.now), elapsed_of(r.job, f.now));
  if (r.attempt != nullptr)
    return static_cast<double>(std::max<std::int64_t>(0, r.attempt->ended - r.attempt->begun)) /
           1e6;
  return elapsed_of(r.job, f.now);
}

std::int32_t cpus(const AccountRow& r, const AccountFacts& f) {
  if (r.step != nullptr && r.step->cpus > 0) return r.step->cpus;
  return allocated(r.job, f.types).cpus;
}

std::string nodes(const AccountRow& r) {
  return fmt::to_string(std::max<std::size_t>(1, r.job.where.size()));
}

std::string allocated_tres(const AccountRow& r, const AccountFacts& f) {
  Resources has = allocated(r.job, f.types);
  if (r.step != nullptr && r.step->id != kBatchStep && has.nodes > 0) {
    has.cpus = cpus(r, f);
    has.gpus = static_cast<std::int32_t>(r.step->devices.size());
  }
  return tres(has, TresOrder::Letters, f.units);
}

std::string memory(const AccountRow& r, const AccountFacts& f) {
  if (r.step->max_rss_kib <= 0) return {};
  return amount(static_cast<double>(r.step->max_rss_kib), 'K', f.units);
}

double joules(const AccountRow& r) { return r.job.energy_kwh * kJoulesPerKwh; }

std::int64_t begin(const AccountRow& r) {
  if (r.step != nullptr) return r.step->begun;
  return r.attempt != nullptr ? r.attempt->begun : start_of(r.job);
}

std::int64_t end(const AccountRow& r) {
  if (r.step != nullptr) return r.step->ended;
  return r.attempt != nullptr ? r.attempt->ended : r.job.ended;
}

std::string exit_code(const AccountRow& r) {
  if (r.step != nullptr) {
    const AccountedExit exit = accounted_exit(*r.step);
    return exit_pair(exit.code, exit.signal);
  }
  if (r.attempt != nullptr) return exit_pair(r.attempt->exit_code, r.attempt->signal);
  const AccountedExit exit = accounted_exit(r.job);
  return exit_pair(exit.code, exit.signal);
}

std::string job_id(const AccountRow& r, const std::string& job) {
  return r.step != nullptr ? fmt::format("{}.{}", job, r.step->id) : job;
}

std::string node_list(const AccountRow& r) {
  if (r.attempt != nullptr && !r.attempt->where.empty()) return r.attempt->where.front().node;
  const bool is_placed = !is_waiting(r.job.state) && !r.job.where.empty();
  return is_placed ? nodes_of(r.job) : "None assigned";
}

/// From its submit to its start, or until now.
double planned(const AccountRow& r, const AccountFacts& f) {
  const std::int64_t until = r.job.started > 0 ? r.job.started
                             : r.job.ended > 0 ? r.job.ended
                                               : f.now * 1'000'000;
  return static_cast<double>(std::max<std::int64_t>(0, until - r.job.submitted)) / 1e6;
}

/// An earlier run was followed by another.
std::string attempt_state(const AttemptView& attempt) {
  if (attempt.outcome == "preempted") return "PREEMPTED";
  if (attempt.outcome == "node-failed") return "NODE_FAIL";
  if (attempt.outcome == "failed") return "FAILED";
  return "REQUEUED";
}

std::string state(const AccountRow& r) {
  if (r.step != nullptr) return std::string(state_word(r.step->state));
  return r.attempt != nullptr ? attempt_state(*r.attempt) : accounted_state(r.job);
}

std::string time_limit(const AccountRow& r) {
  const std::int64_t limit = r.job.spec->time_limit;
  return limit > 0 ? day_clock(static_cast<double>(limit)) : "UNLIMITED";
}

/// The line itself is not kept; what it ran is.
std::string submit_line(const AccountRow& r) { return command_of(r.job); }

double total_cpu(const AccountRow& r) {
  return r.step != nullptr ? r.step->cpu_seconds : r.cpu_seconds;
}

/// Of whom a field tells something: of a step it is empty otherwise.
enum class Of : unsigned char { Nobody, Jobs, Steps, Both };

struct Field {
  SheetField field;
  Of of = Of::Nobody;
  std::string (*value)(const AccountRow& r, const AccountFacts& f) = nullptr;
};

using R = const AccountRow&;
using F = const AccountFacts&;

// clang-format off
constexpr std::array kFields{
    Field{{"Account", 10}, Of::Both, [](R r, F) -> std::string { return account_name(r.job); }},
    Field{{"AdminComment", 15}},
    Field{{"AllocCPUS", 10}, Of::Both, [](R r, F f) -> std::string { return fmt::to_string(cpus(r, f)); }},
    Field{{"AllocNodes", 10}, Of::Both, [](R r, F) -> std::string { return nodes(r); }},
    Field{{"AllocTRES", 10}, Of::Both, [](R r, F f) -> std::string { return allocated_tres(r, f); }},
    Field{{"AssocID", 7}},
    Field{{"AveCPU", 10}, Of::Steps, [](R r, F) -> std::string { return processor_clock(r.step->cpu_seconds / std::max(1, r.step->tasks)); }},
    Field{{"AveCPUFreq", 10}},
    Field{{"AveDiskRead", 14}},
    Field{{"AveDiskWrite", 14}},
    Field{{"AvePages", 10}},
    Field{{"AveRSS", 10}, Of::Steps, [](R r, F f) -> std::string { return memory(r, f); }},
    Field{{"AveVMSize", 10}},
    Field{{"BlockID", 16}},
    Field{{"Cluster", 10}, Of::Both, [](R, F f) -> std::string { return f.cluster; }},
    Field{{"Comment", 14}, Of::Jobs, [](R r, F) -> std::string { return r.job.spec->comment; }},
    Field{{"Constraints", 19}},
    Field{{"ConsumedEnergy", 14}, Of::Jobs, [](R r, F f) -> std::string { return r.job.energy_kwh > 0 ? amount(joules(r), 0, f.units) : ""; }},
    Field{{"ConsumedEnergyRaw", 17}, Of::Jobs, [](R r, F) -> std::string { return r.job.energy_kwh > 0 ? fmt::format("{:.0f}", joules(r)) : ""; }},
    Field{{"Container", 19}},
    Field{{"CPUTime", 10}, Of::Both, [](R r, F f) -> std::string { return day_clock(std::floor(elapsed(r, f)) * cpus(r, f)); }},
    Field{{"CPUTimeRAW", 10}, Of::Both, [](R r, F f) -> std::string { return fmt::format("{:.0f}", std::floor(elapsed(r, f)) * cpus(r, f)); }},
    Field{{"DBIndex", 21}, Of::Jobs, [](R r, F) -> std::string { return fmt::to_string(r.job.number); }},
    Field{{"DerivedExitCode", 15}, Of::Jobs, [](R r, F) -> std::string { return exit_pair(shown_exit(r.job).code, 0); }},
    Field{{"Elapsed", 10}, Of::Both, [](R r, F f) -> std::string { return day_clock(elapsed(r, f)); }},
    Field{{"ElapsedRaw", 10}, Of::Both, [](R r, F f) -> std::string { return fmt::format("{:.0f}", std::floor(elapsed(r, f))); }},
    Field{{"Eligible", 19}, Of::Both, [](R r, F) -> std::string { return moment_or(r.step != nullptr ? r.step->begun : eligible_of(r.job), "Unknown"); }},
    Field{{"End", 19}, Of::Both, [](R r, F) -> std::string { return moment_or(end(r), "Unknown"); }},
    Field{{"ExitCode", 8}, Of::Both, [](R r, F) -> std::string { return exit_code(r); }},
    Field{{"Extra", 14}},
    Field{{"FailedNode", 8}},
    Field{{"Flags", 19}},
    Field{{"GID", 6}, Of::Jobs, [](R r, F) -> std::string { return account_of(r.job.spec->user).gid; }},
    Field{{"Group", 9}, Of::Jobs, [](R r, F) -> std::string { return account_of(r.job.spec->user).group; }},
    Field{{"JobID", 12, true}, Of::Both, [](R r, F) -> std::string { return job_id(r, shown_id(r.job, r.indices)); }},
    Field{{"JobIDRaw", 12, true}, Of::Both, [](R r, F) -> std::string { return job_id(r, fmt::to_string(r.indices.empty() ? r.job.number : r.job.array)); }},
    Field{{"JobName", 10}, Of::Both, [](R r, F) -> std::string { return r.step != nullptr ? r.step->name : name_of(r.job, r.indices); }},
    Field{{"Layout", 9}},
    Field{{"Licenses", 10}},
    Field{{"MaxDiskRead", 12}},
    Field{{"MaxDiskReadNode", 15}},
    Field{{"MaxDiskReadTask", 15}},
    Field{{"MaxDiskWrite", 12}},
    Field{{"MaxDiskWriteNode", 16}},
    Field{{"MaxDiskWriteTask", 16}},
    Field{{"MaxPages", 8}},
    Field{{"MaxPagesNode", 12}},
    Field{{"MaxPagesTask", 14}},
    Field{{"MaxRSS", 10}, Of::Steps, [](R r, F f) -> std::string { return memory(r, f); }},
    Field{{"MaxRSSNode", 10}, Of::Steps, [](R r, F) -> std::string { return r.step->max_rss_kib > 0 ? nodes_of(r.job) : ""; }},
    Field{{"MaxRSSTask", 10}},
    Field{{"MaxVMSize", 10}},
    Field{{"MaxVMSizeNode", 14}},
    Field{{"MaxVMSizeTask", 14}},
    Field{{"McsLabel", 12}},
    Field{{"MinCPU", 10}},
    Field{{"MinCPUNode", 10}},
    Field{{"MinCPUTask", 10}},
    Field{{"NCPUS", 10}, Of::Both, [](R r, F f) -> std::string { return fmt::to_string(cpus(r, f)); }},
    Field{{"NNodes", 8}, Of::Both, [](R r, F) -> std::string { return nodes(r); }},
    Field{{"NodeList", 15}, Of::Both, [](R r, F) -> std::string { return node_list(r); }},
    Field{{"NTasks", 8}, Of::Steps, [](R r, F) -> std::string { return fmt::to_string(r.step->tasks); }},
    Field{{"Partition", 10}, Of::Jobs, [](R r, F) -> std::string { return partition_of(r.job); }},
    Field{{"Planned", 10}, Of::Jobs, [](R r, F f) -> std::string { return day_clock(planned(r, f)); }},
    Field{{"PlannedCPU", 10}, Of::Jobs, [](R r, F f) -> std::string { return day_clock(std::floor(planned(r, f)) * requested(r.job).cpus); }},
    Field{{"PlannedCPURAW", 13}, Of::Jobs, [](R r, F f) -> std::string { return fmt::format("{:.0f}", std::floor(planned(r, f)) * requested(r.job).cpus); }},
    Field{{"Priority", 10}, Of::Jobs, [](R r, F) -> std::string { return fmt::to_string(r.job.spec->priority); }},
    Field{{"QOS", 10}, Of::Jobs, [](R, F) -> std::string { return std::string(kQos); }},
    Field{{"QOSRAW", 6}},
    Field{{"QOSREQ", 10}},
    Field{{"Reason", 22}, Of::Jobs, [](R r, F) -> std::string { return slurm_reason(r.job); }},
    Field{{"ReqCPUFreq", 10}},
    Field{{"ReqCPUFreqGov", 13}},
    Field{{"ReqCPUFreqMax", 13}},
    Field{{"ReqCPUFreqMin", 13}},
    Field{{"ReqCPUS", 8}, Of::Both, [](R r, F f) -> std::string { return fmt::to_string(r.step != nullptr ? cpus(r, f) : requested(r.job).cpus); }},
    Field{{"ReqMem", 10}, Of::Jobs, [](R r, F f) -> std::string { return r.job.spec->memory_mib > 0 ? amount(static_cast<double>(r.job.spec->memory_mib), 'M', f.units) : "0"; }},
    Field{{"ReqNodes", 8}, Of::Both, [](R, F) -> std::string { return "1"; }},
    Field{{"ReqTRES", 10}, Of::Jobs, [](R r, F f) -> std::string { return tres(requested(r.job), TresOrder::Letters, f.units); }},
    Field{{"Reservation", 20}},
    Field{{"ReservationId", 8}},
    Field{{"Restarts", 8}, Of::Jobs, [](R r, F) -> std::string { return fmt::to_string(std::max(0, r.job.attempts - 1)); }},
    Field{{"SLUID", 14}},
    Field{{"Start", 19}, Of::Both, [](R r, F) -> std::string { return moment_or(begin(r), "Unknown"); }},
    Field{{"State", 10}, Of::Both, [](R r, F) -> std::string { return state(r); }},
    Field{{"StdErr", 20}, Of::Jobs, [](R r, F) -> std::string { return r.job.error; }},
    Field{{"StdIn", 20}, Of::Jobs, [](R r, F) -> std::string { return r.job.spec->input.empty() ? "/dev/null" : r.job.spec->input; }},
    Field{{"StdOut", 20}, Of::Jobs, [](R r, F) -> std::string { return r.job.output; }},
    Field{{"Submit", 19}, Of::Both, [](R r, F) -> std::string { return moment_or(r.step != nullptr ? r.step->begun : r.job.submitted, "Unknown"); }},
    Field{{"SubmitLine", 20}, Of::Jobs, [](R r, F) -> std::string { return submit_line(r); }},
    Field{{"Suspended", 10}, Of::Both, [](R r, F) -> std::string { return day_clock(r.attempt != nullptr ? 0 : r.job.suspended_seconds); }},
    Field{{"SystemComment", 15}},
    Field{{"SystemCPU", 10}},
    Field{{"Timelimit", 10}, Of::Jobs, [](R r, F) -> std::string { return time_limit(r); }},
    Field{{"TimelimitRaw", 10}, Of::Jobs, [](R r, F) -> std::string { return r.job.spec->time_limit > 0 ? fmt::to_string((r.job.spec->time_limit + 59) / 60) : "UNLIMITED"; }},
    Field{{"TotalCPU", 10}, Of::Both, [](R r, F) -> std::string { return processor_clock(total_cpu(r)); }},
    Field{{"TRESUsageInAve", 14}},
    Field{{"TRESUsageInMax", 14}},
    Field{{"TRESUsageInMaxNode", 18}},
    Field{{"TRESUsageInMaxTask", 18}},
    Field{{"TRESUsageInMin", 14}},
    Field{{"TRESUsageInMinNode", 18}},
    Field{{"TRESUsageInMinTask", 18}},
    Field{{"TRESUsageInTot", 14}},
    Field{{"TRESUsageOutAve", 15}},
    Field{{"TRESUsageOutMax", 15}},
    Field{{"TRESUsageOutMaxNode", 19}},
    Field{{"TRESUsageOutMaxTask", 19}},
    Field{{"TRESUsageOutMin", 15}},
    Field{{"TRESUsageOutMinNode", 19}},
    Field{{"TRESUsageOutMinTask", 19}},
    Field{{"TRESUsageOutTot", 15}},
    Field{{"UID", 6}, Of::Jobs, [](R r, F) -> std::string { return account_of(r.job.spec->user).uid; }},
    Field{{"User", 9}, Of::Jobs, [](R r, F) -> std::string { return r.job.spec->user; }},
    Field{{"UserCPU", 10}},
    Field{{"WCKey", 10}},
    Field{{"WCKeyID", 10}},
    Field{{"WorkDir", 20}, Of::Jobs, [](R r, F) -> std::string { return r.job.spec->workdir; }},
};
// clang-format on

}  // namespace

double step_seconds(const StepView& step, std::int64_t now) {
  const std::int64_t end = step.ended > 0 ? step.ended : now * 1'000'000;
  return static_cast<double>(std::max<std::int64_t>(0, end - step.begun)) / 1e6;
}

const std::vector<SheetField>& account_fields() {
  static const std::vector<SheetField> all = [] {
    std::vector<SheetField> fields;
    for (const Field& one : kFields) fields.push_back(one.field);
    return fields;
  }();
  return all;
}

std::string account_value(const AccountRow& row, std::size_t field, const AccountFacts& facts) {
  const Field& asked = kFields[field];
  const bool is_told =
      asked.of == Of::Both || asked.of == (row.step != nullptr ? Of::Steps : Of::Jobs);
  return is_told && asked.value != nullptr ? asked.value(row, facts) : std::string();
}

}  // namespace berth::client::slurm
