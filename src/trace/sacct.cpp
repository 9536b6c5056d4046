// Slurm accounting as text: sacct -P with a header, or fields joined by U+2603 without one.
#include <algorithm>
#include <array>

#include "trace/cell.h"
#include "trace/csv.h"
#include "trace/slurm_text.h"
#include "trace/tables.h"

namespace berth {

namespace {

constexpr std::int64_t kMostAmount = 1'000'000'000'000;

std::int64_t amount_or_zero(std::string_view text) {
  const auto amount = parse_whole(text);
  return amount.is_good() && amount.value > 0 ? std::min(amount.value, kMostAmount) : 0;
}

// "199G", "32000M", "1294440K"; a bare number is MiB.
std::int64_t memory_mib(std::string_view text) {
  if (text.empty()) return 0;
  double mib_per_unit = 1;
  switch (text.back()) {
    case 'K': mib_per_unit = 1.0 / 1024; break;
    case 'G': mib_per_unit = 1024; break;
    case 'T': mib_per_unit = 1024.0 * 1024; break;
    default: break;
  }
  if (text.back() >= 'A') text.remove_suffix(1);
  const auto amount = parse_real(text);
  if (!amount.is_good() || amount.value < 0) return 0;
  return static_cast<std::int64_t>(std::min(amount.value * mib_per_unit, 1e12));
}

}  // namespace

SlurmResources parse_tres(std::string_view text) {
  constexpr std::string_view kTypedGpu = "gres/gpu:";
  SlurmResources resources;
  std::int64_t typed_gpus = 0;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = pair.substr(0, equals);
    const std::string_view amount = pair.substr(equals + 1);
    if (key == "gres/gpu") resources.gpus = amount_or_zero(amount);
    if (key == "cpu") resources.cpus = amount_or_zero(amount);
    if (key == "mem") resources.memory_mib = memory_mib(amount);
    if (!key.starts_with(kTypedGpu)) continue;
    typed_gpus = std::min(typed_gpus + amount_or_zero(amount), kMostAmount);
    if (!resources.gpu_type.empty()) resources.gpu_type += '|';
    resources.gpu_type += key.substr(kTypedGpu.size());
  }
  // Slurm counts typed GPUs in the plain total too, but old versions print only the typed ones.
  resources.gpus = std::max(resources.gpus, typed_gpus);
  return resources;
}

TraceStatus slurm_status(std::string_view state) {
  state = state.substr(0, state.find_first_of(" +"));
  if (state == "REQUEUED" || state == "SUSPENDED") return TraceStatus::Killed;
  return trace_status_from(state).value_or(TraceStatus::Completed);
}

void set_resources(TraceJob& job, const SlurmResources& resources) {
  job.gpus = static_cast<std::int32_t>(resources.gpus);
  job.cpus_milli =
      static_cast<std::int32_t>(std::min<std::int64_t>(resources.cpus, 2'000'000) * 1000);
  job.memory_mib =
      static_cast<std::int32_t>(std::min<std::int64_t>(resources.memory_mib, 2'000'000'000));
}

namespace tables {

namespace {

constexpr auto kNeeded = Presence::Required;

constexpr std::array kSacctColumns{
    TableColumn{"jobid", Field::Key, kNeeded},
    TableColumn{"jobname", Field::Name},
    TableColumn{"user", Field::User},
    TableColumn{"account", Field::Group},
    TableColumn{"partition", Field::Queue},
    TableColumn{"state", Field::Text0, kNeeded},
    TableColumn{"submit", Field::Submit, kNeeded},
    TableColumn{"elapsed", Field::Text1, kNeeded},
    TableColumn{"timelimit", Field::Text2},
    TableColumn{"reqtres", Field::Text3},
    TableColumn{"alloctres", Field::Text4, kNeeded},
};
// The order in which the cluster report tools ask for fields; Text5 is not needed.
constexpr std::array kSnowmanColumns{
    TableColumn{"JobID", Field::Key, kNeeded},
    TableColumn{"JobName", Field::Name},
    TableColumn{"User", Field::User},
    TableColumn{"Partition", Field::Queue},
    TableColumn{"NodeList", Field::Text5},
    TableColumn{"NNodes", Field::Text5},
    TableColumn{"NCPUs", Field::Text5},
    TableColumn{"NTasks", Field::Text5},
    TableColumn{"State", Field::Text0, kNeeded},
    TableColumn{"Submit", Field::Submit, kNeeded},
    TableColumn{"Start", Field::Text5},
    TableColumn{"End", Field::Text5},
    TableColumn{"Timelimit", Field::Text2},
    TableColumn{"Elapsed", Field::Text1, kNeeded},
    TableColumn{"TotalCPU", Field::Text5},
    TableColumn{"CPUTime", Field::Text5},
    TableColumn{"UserCPU", Field::Text5},
    TableColumn{"SystemCPU", Field::Text5},
    TableColumn{"ReqMem", Field::Text5},
    TableColumn{"MaxRSS", Field::Text5},
    TableColumn{"MaxVMSize", Field::Text5},
    TableColumn{"ReqTRES", Field::Text3},
    TableColumn{"AllocTRES", Field::Text4},
};

void complete_sacct(TableRow& row) {
  if (row.key.find('.') != std::string_view::npos)
    return row.builder.leave_out("job steps (the job itself is kept)");
  const SlurmResources asked = parse_tres(row.texts[3]);
  SlurmResources given = parse_tres(row.texts[4]);
  if (given.gpus == 0 && asked.gpus == 0) return row.builder.leave_out("rows that ask for no GPU");
  const auto elapsed = parse_slurm_span(row.texts[1]);
  if (!elapsed.is_good()) return row.problem(1, "Elapsed " + std::string(elapsed.broken_rule));
  if (elapsed.value == Duration{}) return row.builder.leave_out("rows that never ran (run time 0)");
  if (given.gpus == 0) given = asked;
  if (given.gpus > kMaxGpus) return row.problem(4, "gpus must be at most 1000000");
  set_resources(row.job, given);
  row.job.gpu_type = row.builder.intern(asked.gpu_type);  // what was asked for, not what was given
  row.job.duration = elapsed.value;
  row.job.status = slurm_status(row.texts[0]);
  row.job.failure = failure_kind_from(row.texts[0]).value_or(FailureKind::Unknown);
  const auto limit = parse_slurm_span(row.texts[2]);
  if (limit.is_good()) row.job.estimate = limit.value;
}

constexpr std::string_view kNote = "jobs still running in the log end with the time they had then";

}  // namespace

const TableFormat kSacct{.name = "sacct",
                         .columns = kSacctColumns,
                         .ids = Ids::GivenMayRepeat,
                         .no_gpu = NoGpu::LeaveOut,
                         .complete = complete_sacct,
                         .note = kNote};
const TableFormat kSacctSnowman{.name = "sacct",
                                .columns = kSnowmanColumns,
                                .ids = Ids::GivenMayRepeat,
                                .no_gpu = NoGpu::LeaveOut,
                                .header = Header::None,
                                .complete = complete_sacct,
                                .note = kNote};

}  // namespace tables

}  // namespace berth
