// Logs of production clusters: Philly, Helios, PAI, openb, ITP, Acme, MIT Supercloud.
#include <array>
#include <charconv>
#include <cmath>

#include "trace/cell.h"
#include "trace/csv.h"
#include "trace/tables.h"

namespace berth::tables {

namespace {

constexpr auto kNeeded = Presence::Required;

constexpr std::array kPhillyColumns{
    TableColumn{"timestamp", Field::Submit, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"num_gpus", Field::Gpus, kNeeded},
    TableColumn{"gpu_time", Field::Text0, kNeeded},
    TableColumn{"cluster", Field::Queue, kNeeded},
};
constexpr std::array kPhillySampleColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"arrival_time_s", Field::Submit, kNeeded},
    TableColumn{"duration_s", Field::RunTime, kNeeded},
    TableColumn{"gpu_count", Field::Gpus, kNeeded},
};
constexpr std::array kPhillySampleRawColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"arrival_time", Field::Submit, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"gpu_count", Field::Gpus, kNeeded},
    TableColumn{"source_trace", Field::Text0, kNeeded},
};
constexpr std::array kHeliosColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"user", Field::User, kNeeded},
    TableColumn{"vc", Field::Queue, kNeeded},
    TableColumn{"gpu_num", Field::Gpus, kNeeded},
    TableColumn{"cpu_num", Field::Cpus},
    TableColumn{"state", Field::Text0, kNeeded},
    TableColumn{"submit_time", Field::Submit, kNeeded},
    TableColumn{"start_time", Field::Text1},
    TableColumn{"end_time", Field::Text2},
    TableColumn{"duration", Field::RunTime, kNeeded},
};
constexpr std::array kServiceColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"arrival_s", Field::Submit, kNeeded},
    TableColumn{"service_sec", Field::RunTime, kNeeded},
    TableColumn{"gpu_count", Field::Gpus, kNeeded},
};
constexpr std::array kPaiTaskColumns{
    TableColumn{"job_name", Field::Key, kNeeded},
    TableColumn{"task_name", Field::Name, kNeeded},
    TableColumn{"inst_num", Field::Text0, kNeeded},
    TableColumn{"status", Field::Text1, kNeeded},
    TableColumn{"start_time", Field::Text2, kNeeded},
    TableColumn{"end_time", Field::Text3, kNeeded},
    TableColumn{"plan_gpu", Field::Text4, kNeeded},
    TableColumn{"gpu_type", Field::GpuType},
};
constexpr std::array kOpenbColumns{
    TableColumn{"name", Field::Key, kNeeded},
    TableColumn{"cpu_milli", Field::Text0, kNeeded},
    TableColumn{"memory_mib", Field::Text1, kNeeded},
    TableColumn{"num_gpu", Field::Gpus, kNeeded},
    TableColumn{"gpu_milli", Field::Text2, kNeeded},
    TableColumn{"gpu_spec", Field::GpuType},
    TableColumn{"qos", Field::Queue},
    TableColumn{"pod_phase", Field::Text3},
    TableColumn{"creation_time", Field::Submit, kNeeded},
    TableColumn{"deletion_time", Field::Text4, kNeeded},
    TableColumn{"scheduled_time", Field::Text5, kNeeded},
};
constexpr std::array kDlrmColumns{
    TableColumn{"instance_sn", Field::Key, kNeeded},
    TableColumn{"app_name", Field::Group, kNeeded},
    TableColumn{"gpu_request", Field::Gpus, kNeeded},
    TableColumn{"cpu_request", Field::Cpus},
    TableColumn{"memory_request", Field::MemoryGb},
    TableColumn{"creation_time", Field::Text0, kNeeded},
    TableColumn{"scheduled_time", Field::Text5, kNeeded},
    TableColumn{"deletion_time", Field::Text4, kNeeded},
};
constexpr std::array kItpColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"submission_time", Field::Submit, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"num_gpu", Field::Gpus, kNeeded},
    TableColumn{"num_iteration", Field::Iterations},
    TableColumn{"model_name", Field::Model},
    TableColumn{"deadline", Field::Deadline},
    TableColumn{"batch_size", Field::BatchSize},
};
constexpr std::array kKalosColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"arrival_time", Field::Submit, kNeeded},
    TableColumn{"num_iteration", Field::Iterations, kNeeded},
    TableColumn{"iteration_computing_time", Field::Text0, kNeeded},
    TableColumn{"iteration_networking_time", Field::Text1, kNeeded},
    TableColumn{"gpu_workers", Field::Text2, kNeeded},
    TableColumn{"gpu_per_worker", Field::Text3, kNeeded},
    TableColumn{"cpu_per_gpu_worker", Field::Text4},
};
constexpr std::array kMitColumns{
    TableColumn{"id_job", Field::Key, kNeeded},
    TableColumn{"id_user", Field::User, kNeeded},
    TableColumn{"partition", Field::Queue},
    TableColumn{"state", Field::Text0, kNeeded},
    TableColumn{"timelimit", Field::Text1},
    TableColumn{"time_submit", Field::Submit, kNeeded},
    TableColumn{"time_start", Field::Text2, kNeeded},
    TableColumn{"time_end", Field::Text3, kNeeded},
    TableColumn{"tres_alloc", Field::Text4, kNeeded},
};

// An unknown word for how a job ended is no reason to refuse a published log.
TraceStatus status_or_completed(std::string_view word) {
  // Every format that calls this is somebody else's log, which we cannot ask to be corrected.
  return trace_status_from(word).value_or(TraceStatus::Completed);
}

// Run time from two instants; a job that never started or has no end yet is left out.
void run_between(TableRow& row, std::size_t start, std::size_t end) {
  if (row.texts[start].empty()) return row.builder.leave_out("rows that never started");
  if (row.texts[end].empty()) return row.builder.leave_out("rows without an end");
  const auto from = parse_instant(row.texts[start], kTicksPerSecond);
  const auto to = parse_instant(row.texts[end], kTicksPerSecond);
  if (!from.is_good()) return row.problem(start, "start time " + std::string(from.broken_rule));
  if (!to.is_good()) return row.problem(end, "end time " + std::string(to.broken_rule));
  // Some logs write 0 for "never": with a later submit it cannot be a real start.
  if (from.value == kTimeZero && row.job.submit > kTimeZero)
    return row.builder.leave_out("rows that never started");
  if (to.value < from.value) return row.problem(end, "end time must not be before the start");
  row.job.duration = to.value - from.value;
  row.job.recorded = RecordedRun{.start = from.value, .end = to.value, .held = row.job.duration};
}

// Answers 0 for a bad cell, so that the rest of the row is still checked; the row itself is lost.
std::int64_t whole_or_problem(TableRow& row, std::size_t text, std::string_view name,
                              std::int64_t most) {
  const auto number = parse_whole(row.texts[text]);
  if (number.is_good() && number.value >= 0 && number.value <= most) return number.value;
  row.problem(text,
              std::string(name) + " must be a whole number from 0 to " + std::to_string(most));
  return 0;
}

/// Jobs that never started have no start in the log; a record needs both.
void complete_helios(TableRow& row) {
  row.job.status = status_or_completed(row.texts[0]);
  const auto start = parse_instant(row.texts[1], kTicksPerSecond);
  const auto end = parse_instant(row.texts[2], kTicksPerSecond);
  if (start.is_good() && end.is_good())
    row.job.recorded =
        RecordedRun{.start = start.value, .end = end.value, .held = row.job.duration};
}

void complete_pai_task(TableRow& row) {
  const std::int64_t instances = whole_or_problem(row, 0, "inst_num", kMaxGpus);
  row.job.status = status_or_completed(row.texts[1]);
  if (row.texts[4].empty()) return row.builder.leave_out("rows that ask for no GPU");
  const auto percent = parse_real(row.texts[4]);  // 100 = one GPU per instance
  if (!percent.is_good() || percent.value < 0 || percent.value > 1e6)
    return row.problem(4, "plan_gpu must be a percentage");
  // A gang gets whole devices; only a single instance may keep a fraction (below).
  const double total = std::ceil(percent.value / 100) * static_cast<double>(instances);
  if (total > static_cast<double>(kMaxGpus)) return row.problem(4, "gpus must be at most 1000000");
  row.job.gpus = static_cast<std::int32_t>(total);
  if (row.job.gpus == 1 && percent.value < 100)
    row.job.gpu_milli = std::max(1, static_cast<std::int32_t>(percent.value * 10));
  run_between(row, 2, 3);
  if (!row.builder.row_is_good()) return;
  row.job.submit = row.job.recorded->start;  // queueing is not in the log,
  row.job.recorded.reset();                  // and a record without it would compare with nothing
}

// Times of pods are in seconds; a share of a GPU counts only for pods of one GPU.
void complete_pod(TableRow& row) {
  row.job.cpus_milli =
      static_cast<std::int32_t>(whole_or_problem(row, 0, "cpu_milli", 2'000'000'000));
  row.job.memory_mib =
      static_cast<std::int32_t>(whole_or_problem(row, 1, "memory_mib", 2'000'000'000));
  const std::int64_t milli = whole_or_problem(row, 2, "gpu_milli", 1000);
  if (row.job.gpus == 1 && milli >= 1) row.job.gpu_milli = static_cast<std::int32_t>(milli);
  row.job.status = status_or_completed(row.texts[3]);
  run_between(row, 5, 4);
}

void complete_openb(TableRow& row) {
  if (row.job.gpus == 0) return row.builder.leave_out("rows that ask for no GPU");
  complete_pod(row);
}

/// A pod without a GPU is nothing of one device.
void complete_openb_all(TableRow& row) {
  const bool cores_only = row.job.gpus == 0;
  if (cores_only) row.job.gpus = 1;
  complete_pod(row);
  if (cores_only) row.job.gpu_milli = 0;
}

void complete_dlrm(TableRow& row) {
  if (row.job.gpus == 0) return row.builder.leave_out("rows that ask for no GPU");
  row.job.kind = JobKind::Service;
  // Their real start is unknown, so their run time is too.
  if (row.texts[0].empty()) return row.builder.leave_out("rows that began before the log");
  const auto submit = parse_instant(row.texts[0], kTicksPerSecond);
  if (!submit.is_good()) return row.problem(0, "creation_time " + std::string(submit.broken_rule));
  row.job.submit = submit.value;
  run_between(row, 5, 4);
}

void complete_kalos(TableRow& row) {
  const auto compute = parse_real(row.texts[0]);
  const auto network = parse_real(row.texts[1]);
  const auto per_worker = parse_whole(row.texts[3]);
  const std::int64_t workers = whole_or_problem(row, 2, "gpu_workers", kMaxGpus);
  if (!compute.is_good() || compute.value < 0)
    return row.problem(0, "iteration_computing_time must be a number of seconds");
  if (!network.is_good() || network.value < 0)
    return row.problem(1, "iteration_networking_time must be a number of seconds");
  if (!per_worker.is_good() || per_worker.value < 0 || per_worker.value > kMaxGpus ||
      workers * per_worker.value > kMaxGpus) {
    return row.problem(3, "gpus must be at most 1000000");
  }
  row.job.gpus = static_cast<std::int32_t>(workers * per_worker.value);
  const double seconds = static_cast<double>(row.job.iterations) * (compute.value + network.value);
  if (seconds > kMaxInputSeconds) return row.problem(0, "duration must be at most 1e11 seconds");
  row.job.duration = seconds_to_duration(seconds);
  const auto cpus = parse_real(row.texts[4]);
  if (cpus.is_good() && cpus.value >= 0 && cpus.value * static_cast<double>(workers) < 2e6) {
    row.job.cpus_milli =
        static_cast<std::int32_t>(std::llround(cpus.value * static_cast<double>(workers) * 1000));
  }
}

// "1=20,2=170000,4=1,1002=2": pairs of resource and amount; 1001 and 1002 are GPUs on that cluster.
std::int64_t amount_of(std::string_view resources, std::string_view key) {
  std::int64_t total = 0;
  for (CsvRows pairs(resources, ","); pairs.next();) {
    for (const std::string_view pair : pairs.fields()) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos || pair.substr(0, equals) != key) continue;
      const auto amount = parse_whole(pair.substr(equals + 1));
      if (amount.is_good() && amount.value >= 0 && amount.value <= 1'000'000'000)
        total += amount.value;
    }
  }
  return total;
}

// Slurm's numbers for states, as they stand in its database.
TraceStatus slurm_state(std::string_view code) {
  if (code == "3") return TraceStatus::Completed;
  if (code == "4" || code == "6" || code == "8" || code == "10") return TraceStatus::Killed;
  if (code == "5" || code == "7" || code == "9" || code == "11") return TraceStatus::Failed;
  return TraceStatus::Completed;
}

void complete_mit(TableRow& row) {
  const std::string_view resources = row.texts[4];
  const std::int64_t gpus = amount_of(resources, "1001") + amount_of(resources, "1002");
  if (gpus == 0) return row.builder.leave_out("rows that ask for no GPU");
  if (gpus > kMaxGpus) return row.problem(4, "gpus must be at most 1000000");
  row.job.gpus = static_cast<std::int32_t>(gpus);
  row.job.cpus_milli = static_cast<std::int32_t>(
      std::min<std::int64_t>(amount_of(resources, "1"), 1'000'000) * 1000);
  row.job.memory_mib = static_cast<std::int32_t>(amount_of(resources, "2"));
  row.job.status = slurm_state(row.texts[0]);
  // Slurm's INFINITE as it stands in its database: all bits of 32.
  constexpr std::int64_t kUnlimited = 4'294'967'295;
  const auto limit = parse_whole(row.texts[1]);  // minutes
  if (limit.is_good() && limit.value > 0 && limit.value < kUnlimited)
    row.job.estimate = Duration{limit.value * kTicksPerMinute};
  run_between(row, 2, 3);
}

}  // namespace

const TableFormat kPhilly{
    .name = "philly",
    .columns = kPhillyColumns,
    .ids = Ids::RowNumber,
    .note = "no job ids in the file: jobs are called row-1, row-2 …; local times are read as UTC"};
const TableFormat kPhillySample{.name = "philly", .columns = kPhillySampleColumns};
const TableFormat kPhillySampleRaw{.name = "philly", .columns = kPhillySampleRawColumns};
const TableFormat kHelios{.name = "helios",
                          .columns = kHeliosColumns,
                          .no_gpu = NoGpu::LeaveOut,
                          .complete = complete_helios};
const TableFormat kHeliosSample{.name = "helios", .columns = kServiceColumns};
const TableFormat kPaiSample{
    .name = "pai",
    .columns = kServiceColumns,
    .note = "arrival is the start of the task: queueing is not in the log"};
const TableFormat kPaiTasks{.name = "pai",
                            .columns = kPaiTaskColumns,
                            .ids = Ids::GivenMayRepeat,
                            .no_gpu = NoGpu::LeaveOut,
                            .complete = complete_pai_task,
                            .note = "a task is a gang of inst_num instances; arrival is its start"};
const TableFormat kOpenb{
    .name = "openb",
    .columns = kOpenbColumns,
    .no_gpu = NoGpu::LeaveOut,
    .complete = complete_openb,
    .note = "run time is deletion minus scheduling; pods alive at the end of the log end there"};
const TableFormat kOpenbAll{
    .name = "openb-all",
    .columns = kOpenbColumns,
    .no_gpu = NoGpu::LeaveOut,
    .complete = complete_openb_all,
    .note =
        "run time is deletion minus scheduling; pods alive at the end of the log end there; "
        "pods without a GPU hold cores and memory"};
const TableFormat kDlrm{
    .name = "dlrm", .columns = kDlrmColumns, .no_gpu = NoGpu::LeaveOut, .complete = complete_dlrm};
const TableFormat kItp{.name = "itp", .columns = kItpColumns};
const TableFormat kAcmeKalos{
    .name = "acme",
    .columns = kKalosColumns,
    .no_gpu = NoGpu::LeaveOut,
    .complete = complete_kalos,
    .note =
        "run time is iterations x (computing + networking), gpus are workers x GPUs per worker"};
const TableFormat kMitSupercloud{.name = "sacct",
                                 .columns = kMitColumns,
                                 .ids = Ids::GivenMayRepeat,
                                 .no_gpu = NoGpu::LeaveOut,
                                 .complete = complete_mit};

}  // namespace berth::tables
