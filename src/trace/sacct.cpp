// Slurm accounting as text: sacct -P with a header and whatever columns its user asked for, or
// fields joined by U+2603 without one.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "trace/cell.h"
#include "trace/csv.h"
#include "trace/sacct.h"
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
// Unknown units count as MiB: a wrong amount of memory is better than a lost job.
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
    if (key == "gres/shard") resources.shards = amount_or_zero(amount);
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

SlurmResources parse_gres(std::string_view text) {
  SlurmResources resources;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    item = item.substr(0, item.find('('));  // "gpu:a100:2(IDX:0-1)"
    if (item.starts_with("gres:") || item.starts_with("gres/")) item.remove_prefix(5);
    const std::string_view name = item.substr(0, item.find_first_of(":="));
    if (name != "gpu") continue;
    item.remove_prefix(std::min(name.size() + 1, item.size()));
    // The count is last if it is a number; otherwise the item is a type, and one device is meant.
    const std::size_t last = item.find_last_of(":=");
    const std::string_view count = last == std::string_view::npos ? item : item.substr(last + 1);
    const bool is_counted = parse_whole(count).is_good();
    const std::string_view type = !is_counted                      ? item
                                  : last == std::string_view::npos ? std::string_view{}
                                                                   : item.substr(0, last);
    resources.gpus =
        std::min(resources.gpus + (is_counted ? amount_or_zero(count) : 1), kMostAmount);
    if (type.empty()) continue;
    if (!resources.gpu_type.empty()) resources.gpu_type += '|';
    resources.gpu_type += type;
  }
  return resources;
}

namespace {

// "CANCELLED by 1000" and "COMPLETED+" are one word with remarks.
std::string_view state_word(std::string_view state) {
  return state.substr(0, state.find_first_of(" +"));
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

TraceStatus slurm_status(std::string_view state) {
  return trace_status_from(state_word(state)).value_or(TraceStatus::Completed);
}

RunEnd slurm_run_end(std::string_view state, bool has_ended) {
  const std::string_view word = state_word(state);
  if (is_one_of(word, {"REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESIZING"}))
    return RunEnd::Again;
  // Slurm puts such jobs back unless they forbid it, and the row of that run keeps the state.
  if (is_one_of(word, {"PREEMPTED", "NODE_FAIL", "BOOT_FAIL"})) return RunEnd::Lost;
  if (word == "PENDING") return RunEnd::Waiting;
  const bool is_unsaid =
      word.empty() || is_one_of(word, {"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING",
                                       "SIGNALING", "STAGE_OUT", "STOPPED"});
  return is_unsaid && !has_ended ? RunEnd::Running : RunEnd::Over;
}

bool set_resources(TraceJob& job, const SlurmResources& given) {
  job.gpus = static_cast<std::int32_t>(given.gpus);
  if (given.gpus == 0) {  // the engine counts it as one device of which it takes nothing
    job.gpus = 1;
    job.gpu_milli = given.shards > 0 ? 1000 : 0;
  }
  job.cpus_milli = static_cast<std::int32_t>(std::min<std::int64_t>(given.cpus, 2'000'000) * 1000);
  job.memory_mib =
      static_cast<std::int32_t>(std::min<std::int64_t>(given.memory_mib, 2'000'000'000));
  return given.gpus > 0 || given.shards > 0 || given.cpus > 0;
}

void set_record(TraceJob& job, const SlurmTimes& times) {
  job.duration = times.elapsed;
  if (!times.start) return;
  const Time end = times.end.value_or(*times.start + times.elapsed);
  job.recorded = RecordedRun{.start = *times.start,
                             .end = end,
                             .held = std::max(Duration{}, end - *times.start),
                             .restarts = times.restarts,
                             .is_cut = !times.end};
}

namespace tables {

namespace {

constexpr auto kNeeded = Presence::Required;

// Which text is which, for complete_sacct(). Text5 is a column that nobody needs.
enum : std::size_t {
  kState = 0,
  kElapsed = 1,
  kTimeLimit = 2,
  kReqTres = 3,
  kAllocTres = 4,
  kElapsedRaw = 6,
  kTimeLimitRaw = 7,
  kStart = 8,
  kEnd = 9,
  kGres = 10,
  kSubmit = 11,
  kCpus = 12,
  kRestarts = 13,
};

// Which of these are needed, and which may stand for another, is said by missing_columns().
constexpr std::array kSacctColumns{
    TableColumn{"jobidraw", Field::Key},  // where both are, JobID is the later word
    TableColumn{"jobid", Field::Key},          TableColumn{"jobname", Field::Name},
    TableColumn{"user", Field::User},          TableColumn{"account", Field::Group},
    TableColumn{"partition", Field::Queue},    TableColumn{"state", Field::Text0},
    TableColumn{"submit", Field::Text11},      TableColumn{"elapsed", Field::Text1},
    TableColumn{"elapsedraw", Field::Text6},   TableColumn{"start", Field::Text8},
    TableColumn{"end", Field::Text9},          TableColumn{"timelimit", Field::Text2},
    TableColumn{"timelimitraw", Field::Text7}, TableColumn{"reqtres", Field::Text3},
    TableColumn{"alloctres", Field::Text4},    TableColumn{"reqgres", Field::Text10},
    TableColumn{"allocgres", Field::Text10},   TableColumn{"reqcpus", Field::Text12},
    TableColumn{"ncpus", Field::Text12},       TableColumn{"alloccpus", Field::Text12},
    TableColumn{"restarts", Field::Text13},
};
// The order in which the cluster report tools ask for fields.
constexpr std::array kSnowmanColumns{
    TableColumn{"JobID", Field::Key, kNeeded},
    TableColumn{"JobName", Field::Name},
    TableColumn{"User", Field::User},
    TableColumn{"Partition", Field::Queue},
    TableColumn{"NodeList", Field::Text5},
    TableColumn{"NNodes", Field::Text5},
    TableColumn{"NCPUs", Field::Text12},
    TableColumn{"NTasks", Field::Text5},
    TableColumn{"State", Field::Text0, kNeeded},
    TableColumn{"Submit", Field::Text11, kNeeded},
    TableColumn{"Start", Field::Text8},
    TableColumn{"End", Field::Text9},
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

// "Unknown" and "None" are how sacct says that something has not happened.
bool has_happened(std::string_view text) {
  return !text.empty() && text != "Unknown" && text != "None" && text != "None assigned";
}

std::optional<Time> moment(TableRow& row, std::size_t text, std::string_view name) {
  if (!has_happened(row.texts[text])) return std::nullopt;
  const auto parsed = parse_instant(row.texts[text], kTicksPerSecond);
  if (parsed.is_good()) return parsed.value;
  row.problem(text, fmt::format("{} {}", name, parsed.broken_rule));
  return std::nullopt;
}

std::optional<Duration> elapsed_of(TableRow& row) {
  const bool is_raw = !row.texts[kElapsedRaw].empty();
  const std::size_t text = is_raw ? kElapsedRaw : kElapsed;
  if (row.texts[text].empty()) return std::nullopt;
  const auto elapsed =
      is_raw ? parse_span(row.texts[text], kTicksPerSecond) : parse_slurm_span(row.texts[text]);
  if (elapsed.is_good()) return elapsed.value;
  row.problem(text, fmt::format("{} {}", is_raw ? "ElapsedRaw" : "Elapsed", elapsed.broken_rule));
  return Duration{};
}

/// When it ran and for how long: by what the columns are, one follows from the others.
void set_times(TableRow& row) {
  SlurmTimes times{.start = moment(row, kStart, "Start"), .end = moment(row, kEnd, "End")};
  const auto elapsed = elapsed_of(row);
  if (!row.builder.row_is_good()) return;
  if (times.start && times.end && *times.end < *times.start)
    return row.problem(kEnd, "End must not be before Start");
  if (elapsed)
    times.elapsed = *elapsed;
  else if (times.start && times.end)
    times.elapsed = *times.end - *times.start;
  else if (times.start && row.end == RunEnd::Running)
    return row.builder.leave_out("rows without an end (Elapsed or ElapsedRaw would say how long)");
  // What ended knows when; only what still runs may lack it.
  if (row.end != RunEnd::Running && !times.end) times.start.reset();
  const auto restarts = parse_whole(row.texts[kRestarts]);
  if (restarts.is_good())
    times.restarts =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(restarts.value, 0, kMaxRestarts));
  set_record(row.job, times);
}

/// What it was given, or else what it asked for; false: the row says neither.
bool set_devices(TableRow& row) {
  SlurmResources asked = parse_tres(row.texts[kReqTres]);
  SlurmResources given = parse_tres(row.texts[kAllocTres]);
  // Older versions: what TRES say of GPUs stands in AllocGRES or ReqGRES, summed over the nodes.
  if (given.gpus == 0 && asked.gpus == 0) {
    const SlurmResources gres = parse_gres(row.texts[kGres]);
    given.gpus = gres.gpus;
    asked.gpu_type = gres.gpu_type;
  }
  const std::string wanted = asked.gpu_type;  // what was asked for, not what was given
  if (given.gpus == 0 && given.cpus == 0 && given.shards == 0) given = asked;
  if (given.cpus == 0) given.cpus = amount_or_zero(row.texts[kCpus]);
  if (given.gpus > kMaxGpus) {
    row.problem(kAllocTres, "gpus must be at most 1000000");
    return false;
  }
  if (!set_resources(row.job, given)) return false;
  row.job.gpu_type = row.builder.intern(wanted);
  return true;
}

void set_estimate(TableRow& row) {
  // Both may be there; the text wins because the raw one is rounded to minutes.
  const auto limit = parse_slurm_span(row.texts[kTimeLimit]);
  const auto minutes = parse_span(row.texts[kTimeLimitRaw], kTicksPerMinute);
  if (limit.is_good())
    row.job.estimate = limit.value;
  else if (minutes.is_good())  // otherwise UNLIMITED or Partition_Limit: nothing is known
    row.job.estimate = minutes.value;
}

void complete_sacct(TableRow& row) {
  if (row.key.find('.') != std::string_view::npos)
    return row.builder.leave_out("job steps (the job itself is kept)");
  row.end = slurm_run_end(row.texts[kState], has_happened(row.texts[kEnd]));
  const bool has_devices = set_devices(row);
  set_times(row);
  if (!row.builder.row_is_good()) return;
  if (!has_devices && row.job.duration > Duration{})
    return row.builder.leave_out("rows that name neither GPUs nor CPUs");
  const auto submit = parse_instant(row.texts[kSubmit], kTicksPerSecond);
  if (!submit.is_good()) return row.problem(kSubmit, "Submit " + std::string(submit.broken_rule));
  row.job.submit = submit.value;
  row.job.status = slurm_status(row.texts[kState]);
  row.job.failure = failure_kind_from(row.texts[kState]).value_or(FailureKind::Unknown);
  set_estimate(row);
}

constexpr std::string_view kNote = "jobs still running in the log end with the time they had then";

}  // namespace

const TableFormat kSacct{.name = "sacct",
                         .columns = kSacctColumns,
                         .ids = Ids::Runs,
                         .no_gpu = NoGpu::LeaveOut,
                         .never_ran = NeverRan::Keep,
                         .complete = complete_sacct,
                         .note = kNote};
const TableFormat kSacctSnowman{.name = "sacct",
                                .columns = kSnowmanColumns,
                                .ids = Ids::Runs,
                                .no_gpu = NoGpu::LeaveOut,
                                .never_ran = NeverRan::Keep,
                                .header = Header::None,
                                .complete = complete_sacct,
                                .note = kNote};

}  // namespace tables

namespace {

bool has_column(const Sample& sample, std::string_view name) {
  return std::ranges::find(sample.header, name) != sample.header.end();
}

// What the columns do not tell, and which would.
std::vector<std::string> missing_columns(const Sample& sample) {
  const auto has = [&sample](std::string_view name) { return has_column(sample, name); };
  std::vector<std::string> missing;
  if (!has("jobid") && !has("jobidraw")) missing.emplace_back("which job it is: JobID");
  if (!has("submit")) missing.emplace_back("when a job was submitted: Submit");
  if (!has("elapsed") && !has("elapsedraw") && !(has("start") && has("end")))
    missing.emplace_back("how long a job ran: ElapsedRaw, Elapsed, or Start and End");
  if (!has("alloctres") && !has("reqtres") && !has("allocgres") && !has("reqgres"))
    missing.emplace_back("how many GPUs a job had: AllocTRES, ReqTRES or AllocGRES");
  return missing;
}

}  // namespace

bool looks_like_sacct_text(const Sample& sample) {
  constexpr std::array<std::string_view, 9> kOnlySlurm{"jobid",     "jobidraw",     "elapsedraw",
                                                       "alloctres", "reqtres",      "allocgres",
                                                       "reqgres",   "timelimitraw", "submitline"};
  const auto known = std::ranges::count_if(tables::kSacct.columns, [&](const TableColumn& column) {
    return has_column(sample, column.name);
  });
  const bool is_slurm = std::ranges::any_of(
      kOnlySlurm, [&](std::string_view name) { return has_column(sample, name); });
  return is_slurm && known >= 2;
}

// A second line of dashes is how sacct draws its own table.
bool looks_like_sacct_for_people(const Sample& sample) {
  if (!trimmed(sample.first_line).starts_with("JobID")) return false;
  const std::string_view rest = sample.bytes.substr(sample.first_line.size());
  const std::string_view second =
      trimmed(rest.substr(0, std::min(rest.find('\n', 1), rest.size())));
  return !second.empty() && second.find_first_not_of("- ") == std::string_view::npos;
}

Result<Trace> read_sacct_text(std::string_view bytes, const std::string& file,
                              const ReadOptions& options, ReadReport* report) {
  const Sample sample = sample_of(bytes);
  Error error;
  for (const std::string& what : missing_columns(sample))
    error.messages.push_back(
        fmt::format("{}:1:1: no column says {} (add it to sacct --format)", file, what));
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  BERTH_TRY(Trace trace, read_table(bytes, file, tables::kSacct, options, report));
  if (!has_column(sample, "state"))
    trace.notes.emplace_back("no column State: every job counts as completed");
  return trace;
}

Result<Trace> refuse_sacct_for_people(std::string_view, const std::string& file, const ReadOptions&,
                                      ReadReport*) {
  return fail(
      fmt::format("{}:1:1: is sacct's table for people, in which long values are cut off (make it "
                  "with sacct -P --format=JobID,User,Account,Partition,State,Submit,ElapsedRaw,"
                  "TimelimitRaw,ReqTRES,AllocTRES)",
                  file));
}

}  // namespace berth
