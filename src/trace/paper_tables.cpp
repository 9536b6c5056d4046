// Inputs of published schedulers: Muri, Tiresias, Chronus, ElasticFlow, Rubick, Sia/Pollux, Hydra,
// Synergy, Gavel, Shockwave.
#include <array>
#include <string>
#include <utility>

#include "trace/tables.h"

namespace berth::tables {

namespace {

constexpr auto kNeeded = Presence::Required;

constexpr std::array kMuriColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"num_gpu", Field::Gpus, kNeeded},
    TableColumn{"submit_time", Field::Submit, kNeeded},
    TableColumn{"iterations", Field::Iterations, kNeeded},
    TableColumn{"model_name", Field::Model, kNeeded},
    TableColumn{"batch_size", Field::BatchSize},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"resource_time_0", Field::Text0, kNeeded},
    TableColumn{"priority", Field::Priority},
};
constexpr std::array kMuriResultColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"num_gpu", Field::Gpus, kNeeded},
    TableColumn{"submit_time", Field::Submit, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"executed_time", Field::Text0, kNeeded},
    TableColumn{"jct", Field::Text1, kNeeded},
};
constexpr std::array kTiresiasColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"num_gpu", Field::Gpus, kNeeded},
    TableColumn{"submit_time", Field::Submit, kNeeded},
    TableColumn{"iterations", Field::Iterations},
    TableColumn{"model_name", Field::Model, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
};
constexpr std::array kChronusColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"user", Field::Queue, kNeeded},
    TableColumn{"num_gpu", Field::Gpus, kNeeded},
    TableColumn{"submit_time", Field::Submit, kNeeded},
    TableColumn{"iterations", Field::Iterations},
    TableColumn{"model_name", Field::Model},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"expect_time_list", Field::Text0, kNeeded},
    TableColumn{"best_effort", Field::Text1, kNeeded},
};
constexpr std::array kElasticflowColumns{
    TableColumn{"job_id", Field::Key, kNeeded},
    TableColumn{"submit_time", Field::Submit, kNeeded},
    TableColumn{"iteration", Field::Iterations, kNeeded},
    TableColumn{"model_name", Field::Model},
    TableColumn{"ddl", Field::Deadline, kNeeded},
    TableColumn{"batch_size", Field::BatchSize},
    TableColumn{"num_gpu", Field::Gpus, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
};
constexpr std::array kRubickColumns{
    TableColumn{"name", Field::Key, kNeeded},
    TableColumn{"submission_time", Field::Submit, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"application", Field::Model, kNeeded},
    TableColumn{"num_gpus", Field::Gpus, kNeeded},
    TableColumn{"num_cpus", Field::Cpus},
    TableColumn{"exec_plan", Field::Text0, kNeeded},
    TableColumn{"steps", Field::Iterations},
    TableColumn{"is_sla", Field::Priority},
};
constexpr std::array kSiaColumns{
    TableColumn{"name", Field::Key, kNeeded},
    TableColumn{"time", Field::Submit, kNeeded},
    TableColumn{"application", Field::Text0, kNeeded},
    TableColumn{"num_replicas", Field::Gpus, kNeeded},
    TableColumn{"batch_size", Field::BatchSize},
};
constexpr std::array kHydraColumns{
    TableColumn{"job_name", Field::Key, kNeeded},
    TableColumn{"norm_job_submit_time", Field::Submit, kNeeded},
    TableColumn{"ddl", Field::Text0, kNeeded},
    TableColumn{"v100", Field::RunTime, kNeeded},
};
constexpr std::array kSynergyColumns{
    TableColumn{"id", Field::Key, kNeeded},
    TableColumn{"model", Field::Model, kNeeded},
    TableColumn{"arrival", Field::Submit, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"gpus", Field::Gpus, kNeeded},
};

// Gavel and Shockwave: tab-separated, no header. Text5 is what we do not need (commands, flags).
constexpr std::array kGavelMsrColumns{
    TableColumn{"job type", Field::Text0, kNeeded},
    TableColumn{"command", Field::Text5},
    TableColumn{"steps argument", Field::Text5},
    TableColumn{"needs_data_dir", Field::Text5},
    TableColumn{"total_steps", Field::Iterations, kNeeded},
    TableColumn{"arrival", Field::Submit, kNeeded},
    TableColumn{"scale factor", Field::Gpus, kNeeded},
};
constexpr std::array kGavelColumns{
    TableColumn{"job type", Field::Text0, kNeeded},
    TableColumn{"command", Field::Text5},
    TableColumn{"working directory", Field::Text5},
    TableColumn{"steps argument", Field::Text5},
    TableColumn{"needs_data_dir", Field::Text5},
    TableColumn{"total_steps", Field::Iterations, kNeeded},
    TableColumn{"scale factor", Field::Gpus, kNeeded},
    TableColumn{"priority weight", Field::Weight, kNeeded},
    TableColumn{"SLO", Field::Text1, kNeeded},
    TableColumn{"arrival", Field::Submit, kNeeded},
};
constexpr std::array kShockwaveColumns{
    TableColumn{"job type", Field::Text0, kNeeded},
    TableColumn{"command", Field::Text5},
    TableColumn{"working directory", Field::Text5},
    TableColumn{"steps argument", Field::Text5},
    TableColumn{"needs_data_dir", Field::Text5},
    TableColumn{"total_steps", Field::Iterations, kNeeded},
    TableColumn{"scale factor", Field::Gpus, kNeeded},
    TableColumn{"mode", Field::Name},
    TableColumn{"priority weight", Field::Weight, kNeeded},
    TableColumn{"SLO", Field::Text1, kNeeded},
    TableColumn{"duration", Field::RunTime, kNeeded},
    TableColumn{"arrival", Field::Submit, kNeeded},
};

// "ResNet-18 (batch size 32)" is a model and a batch size.
void split_job_type(TableRow& row) {
  constexpr std::string_view kBatch = " (batch size ";
  const std::string_view type = row.texts[0];
  const std::size_t at = type.find(kBatch);
  row.job.model = row.builder.intern(type.substr(0, at));
  if (at == std::string_view::npos) return;
  std::string_view digits = type.substr(at + kBatch.size());
  digits = digits.substr(0, digits.find(')'));
  const auto batch = parse_whole(digits);
  if (!batch.is_good() || batch.value < 0 || batch.value > 1'000'000)
    return row.problem(0, "batch size must be a whole number");
  row.job.batch_size = static_cast<std::int32_t>(batch.value);
}

// An SLO is a multiple of the run time; negative means none.
void set_slo(TableRow& row) {
  if (row.texts[1].empty()) return;
  const auto slo = parse_real(row.texts[1]);
  if (!slo.is_good()) return row.problem(1, "SLO " + std::string(slo.broken_rule));
  if (slo.value <= 0) return;
  const double seconds = slo.value * to_seconds(row.job.duration);
  if (seconds > kMaxInputSeconds) return row.problem(1, "SLO is too large");
  row.job.deadline = row.job.submit + seconds_to_duration(seconds);
}

struct GavelSpeed {
  std::string_view job_type;
  double steps_per_second;  // alone on one V100
};
constexpr std::array kGavelSpeeds{
    GavelSpeed{"ResNet-18 (batch size 16)", 32.35},
    GavelSpeed{"ResNet-18 (batch size 32)", 29.95},
    GavelSpeed{"ResNet-18 (batch size 64)", 24.09},
    GavelSpeed{"ResNet-18 (batch size 128)", 17.99},
    GavelSpeed{"ResNet-18 (batch size 256)", 10.30},
    GavelSpeed{"ResNet-50 (batch size 16)", 11.40},
    GavelSpeed{"ResNet-50 (batch size 32)", 7.79},
    GavelSpeed{"ResNet-50 (batch size 64)", 4.39},
    GavelSpeed{"ResNet-50 (batch size 128)", 2.50},
    GavelSpeed{"Transformer (batch size 16)", 11.06},
    GavelSpeed{"Transformer (batch size 32)", 10.62},
    GavelSpeed{"Transformer (batch size 64)", 8.62},
    GavelSpeed{"Transformer (batch size 128)", 5.45},
    GavelSpeed{"Transformer (batch size 256)", 1.60},
    GavelSpeed{"A3C", 7.18},
    GavelSpeed{"LM (batch size 5)", 109.17},
    GavelSpeed{"LM (batch size 10)", 81.65},
    GavelSpeed{"LM (batch size 20)", 64.74},
    GavelSpeed{"LM (batch size 40)", 45.24},
    GavelSpeed{"LM (batch size 80)", 28.24},
    GavelSpeed{"Recommendation (batch size 512)", 23.32},
    GavelSpeed{"Recommendation (batch size 1024)", 13.28},
    GavelSpeed{"Recommendation (batch size 2048)", 7.47},
    GavelSpeed{"Recommendation (batch size 4096)", 3.91},
    GavelSpeed{"Recommendation (batch size 8192)", 2.84},
    GavelSpeed{"CycleGAN", 4.43},
};

constexpr std::string_view kGavelNote =
    "the file has no run times: total_steps over the job type's throughput on one V100 was taken";

void complete_gavel(TableRow& row) {
  split_job_type(row);
  for (const GavelSpeed& speed : kGavelSpeeds) {
    if (row.texts[0] != speed.job_type) continue;
    const double seconds = static_cast<double>(row.job.iterations) / speed.steps_per_second;
    if (seconds > kMaxInputSeconds)
      return row.builder.problem({.rule = "total_steps is too large"});
    row.job.duration = seconds_to_duration(seconds);
    return set_slo(row);
  }
  row.problem(0, "job type has no known throughput");
}

void complete_shockwave(TableRow& row) {
  split_job_type(row);
  set_slo(row);
}

// The time by which the owner expects the job, in minutes after its submission.
void complete_chronus(TableRow& row) {
  if (row.texts[1] == "1") return;  // best effort: no deadline
  std::string_view first = row.texts[0];
  first = first.substr(0, first.find_first_of("-;| "));
  const auto after = parse_span(first, kTicksPerMinute);
  if (!after.is_good()) return row.problem(0, "expect_time_list " + std::string(after.broken_rule));
  row.job.deadline = row.job.submit + after.value;
}

void complete_hydra(TableRow& row) {
  if (row.texts[0].empty() || row.texts[0] == "inf") return;
  const auto deadline = parse_instant(row.texts[0], kTicksPerSecond);
  if (!deadline.is_good()) return row.problem(0, "ddl " + std::string(deadline.broken_rule));
  row.job.deadline = deadline.value;
}

// GPU seconds to train each application on one T4: iterations recorded at its smallest batch times
// that batch, over the throughput of one T4 at its largest profiled local batch (sia/profiles).
constexpr std::array kSiaGpuSeconds{
    std::pair<std::string_view, std::int64_t>{"cifar10", 3'430},
    std::pair<std::string_view, std::int64_t>{"ncf", 32},
    std::pair<std::string_view, std::int64_t>{"bert", 13'600},
    std::pair<std::string_view, std::int64_t>{"deepspeech2", 18'100},
    std::pair<std::string_view, std::int64_t>{"yolov3", 29'600},
    std::pair<std::string_view, std::int64_t>{"imagenet", 532'400},
    std::pair<std::string_view, std::int64_t>{"gpt_pmp", 51'100},  // on two A100: no T4 profile
};

void complete_sia(TableRow& row) {
  row.job.model = row.builder.intern(row.texts[0]);
  for (const auto& [application, gpu_seconds] : kSiaGpuSeconds) {
    if (row.texts[0] != application) continue;
    row.job.duration = Duration{gpu_seconds * kTicksPerSecond / row.job.gpus};
    return;
  }
  row.problem(0, "application has no nominal run time");
}

}  // namespace

const TableFormat kMuri{
    .name = "muri", .columns = kMuriColumns, .ticks_per_unit = kTicksPerMillisecond};
const TableFormat kMuriResults{
    .name = "muri",
    .columns = kMuriResultColumns,
    .note = "results of a testbed run: only the submitted jobs were taken"};
const TableFormat kTiresias{.name = "tiresias", .columns = kTiresiasColumns};
const TableFormat kChronus{.name = "chronus",
                           .columns = kChronusColumns,
                           .ticks_per_unit = kTicksPerMinute,
                           .complete = complete_chronus};
const TableFormat kElasticflow{.name = "elasticflow", .columns = kElasticflowColumns};
const TableFormat kRubick{.name = "rubick", .columns = kRubickColumns};
const TableFormat kSia{
    .name = "sia",
    .columns = kSiaColumns,
    .complete = complete_sia,
    .note =
        "the file has no run times: each application's nominal T4 time, divided by num_replicas, "
        "was taken (docs/formats/traces.md)"};
const TableFormat kHydra{.name = "hydra",
                         .columns = kHydraColumns,
                         .complete = complete_hydra,
                         .note = "run time is the V100 column; every job takes one GPU"};
const TableFormat kGavelMsr{.name = "gavel",
                            .columns = kGavelMsrColumns,
                            .ids = Ids::RowNumber,
                            .header = Header::None,
                            .complete = complete_gavel,
                            .note = kGavelNote};
const TableFormat kGavel{.name = "gavel",
                         .columns = kGavelColumns,
                         .ids = Ids::RowNumber,
                         .header = Header::None,
                         .complete = complete_gavel,
                         .note = kGavelNote};
const TableFormat kShockwave{.name = "shockwave",
                             .columns = kShockwaveColumns,
                             .ids = Ids::RowNumber,
                             .header = Header::None,
                             .complete = complete_shockwave};
const TableFormat kSynergy{.name = "synergy", .columns = kSynergyColumns, .header = Header::None};

}  // namespace berth::tables
