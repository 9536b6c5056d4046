// Philly's JSON log and sacct --json. Documents are read whole and looked through by member(),
// which never throws: a field of the wrong kind counts as missing.

#include "trace/json_traces.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "trace/cell.h"
#include "trace/csv.h"
#include "trace/slurm_text.h"

namespace berth {

namespace {

using Json = nlohmann::json;

Result<Json> parse_json(std::string_view bytes, const std::string& file) {
  try {
    return Json::parse(bytes.begin(), bytes.end());
  } catch (const Json::parse_error& error) {
    // The library counts bytes; people look for lines.
    const std::size_t place = std::min(error.byte, bytes.size());
    const std::string_view before = bytes.substr(0, place);
    const auto line = std::ranges::count(before, '\n') + 1;
    const std::size_t line_start =
        before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return fail(fmt::format("{}:{}:{}: is not valid JSON (repair or fetch the file again)", file,
                            line, std::max<std::size_t>(place - line_start, 1)));
  } catch (const std::exception& error) {
    return fail(
        fmt::format("{}:1:1: cannot read as JSON: {} (repair the file)", file, error.what()));
  }
}

// A member, or null: no lookup below ever throws.
const Json& member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

// Escapes can smuggle control characters into a name; in a CSV they would not be text any more.
std::string clean(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return std::string(trimmed(text));
}

std::string text_of(const Json& value) {
  if (value.is_string()) return clean(value.get<std::string>());
  if (value.is_number_integer()) return fmt::format("{}", value.get<std::int64_t>());
  return {};
}

// Newer Slurm wraps numbers as {"set": true, "infinite": false, "number": 60}.
std::optional<double> number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const Json& wrapped = member(value, "number");
  const Json& set = member(value, "set");
  if (!wrapped.is_number() || (set.is_boolean() && !set.get<bool>())) return std::nullopt;
  return wrapped.get<double>();
}

bool is_span(double seconds) { return seconds >= 0 && seconds <= kMaxInputSeconds; }

// One attempt held GPUs from its start to its end; "None" or nothing = it did not.
// Attempts still open in the log have no end: they count nothing.
void add_attempt(TraceJob& job, const Json& attempt) {
  const auto start = parse_instant(text_of(member(attempt, "start_time")), kTicksPerSecond);
  const auto end = parse_instant(text_of(member(attempt, "end_time")), kTicksPerSecond);
  if (!start.is_good() || !end.is_good() || end.value < start.value) return;
  const Duration length = end.value - start.value;
  job.duration += length;
  if (!job.recorded) {
    job.recorded = RecordedRun{.start = start.value, .end = end.value, .held = length};
    return;
  }
  job.recorded->start = std::min(job.recorded->start, start.value);
  job.recorded->end = std::max(job.recorded->end, end.value);
  job.recorded->held += length;
  ++job.recorded->restarts;
}

// The full log lists the GPUs each attempt was given on each machine.
std::int64_t gpus_of_attempts(const Json& attempts) {
  std::int64_t most = 0;
  for (const Json& attempt : attempts) {
    std::int64_t count = 0;
    const Json& detail = member(attempt, "detail");
    if (!detail.is_array()) continue;
    for (const Json& machine : detail)
      count += static_cast<std::int64_t>(member(machine, "gpus").size());
    most = std::max(most, count);
  }
  return most;
}

void add_philly_job(TraceBuilder& builder, const Json& item) {
  const Json& attempts = member(item, "attempts");
  const std::string submitted = text_of(member(item, "submitted_time"));
  const auto submit = parse_instant(submitted, kTicksPerSecond);
  if (!attempts.is_array()) return builder.problem({.rule = "attempts must be a list"});
  if (!submit.is_good()) {
    return builder.problem(
        {.rule = fmt::format("submitted_time {}", submit.broken_rule), .got = submitted});
  }
  TraceJob job;
  job.submit = submit.value;
  for (const Json& attempt : attempts) add_attempt(job, attempt);
  const auto given = number_of(member(item, "num_gpus"));
  const double gpus = given ? *given : static_cast<double>(gpus_of_attempts(attempts));
  if (job.duration == Duration{}) return builder.leave_out("rows that never ran (run time 0)");
  if (gpus == 0) return builder.leave_out("rows that ask for no GPU");
  if (!(gpus >= 1 && gpus <= static_cast<double>(kMaxGpus)))
    return builder.problem({.rule = "gpus must lie between 1 and 1000000"});
  if (job.duration > seconds_to_duration(kMaxInputSeconds))
    return builder.problem({.rule = "duration must be at most 1e11 seconds"});
  job.gpus = static_cast<std::int32_t>(gpus);
  job.status = trace_status_from(text_of(member(item, "status"))).value_or(TraceStatus::Completed);
  job.user = builder.intern(text_of(member(item, "user")));
  job.queue = builder.intern(text_of(member(item, "vc")));
  const std::string id = text_of(member(item, item.contains("jobid") ? "jobid" : "id"));
  builder.end_row(job, id, 0, IdRule::Unique);
}

SlurmResources resources_of(const Json& list) {
  SlurmResources resources;
  std::int64_t typed_gpus = 0;
  if (!list.is_array()) return resources;
  for (const Json& entry : list) {
    const std::string type = text_of(member(entry, "type"));
    const std::string name = text_of(member(entry, "name"));
    const double given = number_of(member(entry, "count")).value_or(0);
    const auto count = static_cast<std::int64_t>(std::clamp(given, 0.0, 1e12));
    if (type == "cpu") resources.cpus = count;
    if (type == "mem") resources.memory_mib = count;
    if (type == "gres" && name == "gpu") resources.gpus = count;
    if (type == "gres" && name == "shard") resources.shards = count;
    if (type != "gres" || !name.starts_with("gpu:")) continue;
    typed_gpus = std::min<std::int64_t>(typed_gpus + count, 1'000'000'000'000);
    resources.gpu_type += (resources.gpu_type.empty() ? "" : "|") + name.substr(4);
  }
  // Slurm lists "gpu" and "gpu:a100" for the same devices: the sum would count them twice.
  resources.gpus = std::max(resources.gpus, typed_gpus);
  return resources;
}

/// Newer Slurm lists a state and its flags: ["PENDING", "REQUEUED"] is a run that was put back.
std::string state_of(const Json& job) {
  const Json& current = member(member(job, "state"), "current");
  if (!current.is_array()) return text_of(current);
  std::string state;
  for (const Json& word : current) {
    const std::string text = text_of(word);
    if (state.empty() || slurm_run_end(text, true) == RunEnd::Again) state = text;
  }
  return state;
}

/// A Unix time; nothing of 0, which is how it says "not yet".
std::optional<Time> moment_of(const Json& value) {
  const auto seconds = number_of(value);
  if (!seconds || *seconds <= 0 || !is_span(*seconds)) return std::nullopt;
  return seconds_to_time(*seconds);
}

/// "7_2" of a task of an array, whose own number says nothing to people.
std::string slurm_id_of(const Json& item) {
  const auto array = number_of(member(member(item, "array"), "job_id"));
  const auto task = number_of(member(member(item, "array"), "task_id"));
  if (array && *array > 0 && *array < 1e12 && task && *task >= 0 && *task < 1e12)
    return fmt::format("{:.0f}_{:.0f}", *array, *task);
  return text_of(member(item, "job_id"));
}

void add_slurm_job(TraceBuilder& builder, const Json& item) {
  const Json& time = member(item, "time");
  // What was given counts; what was asked for is the second best.
  const SlurmResources asked = resources_of(member(member(item, "tres"), "requested"));
  SlurmResources given = resources_of(member(member(item, "tres"), "allocated"));
  if (given.gpus == 0 && given.cpus == 0 && given.shards == 0) given = asked;
  if (given.gpus > kMaxGpus) return builder.problem({.rule = "gpus must be at most 1000000"});
  const double submit = number_of(member(time, "submission")).value_or(-1);
  const double elapsed = number_of(member(time, "elapsed")).value_or(-1);
  const double limit_minutes = number_of(member(time, "limit")).value_or(0);
  if (!is_span(submit)) return builder.problem({.rule = "time.submission must be a Unix time"});
  if (!is_span(elapsed))
    return builder.problem({.rule = "time.elapsed must be a number of seconds"});
  TraceJob job;
  if (!set_resources(job, given) && elapsed > 0)
    return builder.leave_out("rows that name neither GPUs nor CPUs");
  SlurmTimes times{.start = moment_of(member(time, "start")),
                   .end = moment_of(member(time, "end")),
                   .elapsed = seconds_to_duration(elapsed)};
  const std::string state = state_of(item);
  const RunEnd end = slurm_run_end(state, times.end.has_value());
  if (end != RunEnd::Running && !times.end) times.start.reset();
  times.restarts = static_cast<std::int32_t>(std::clamp(
      number_of(member(item, "restart_cnt")).value_or(0), 0.0, static_cast<double>(kMaxRestarts)));
  set_record(job, times);
  job.submit = seconds_to_time(submit);
  if (limit_minutes > 0 && is_span(limit_minutes * 60))
    job.estimate = seconds_to_duration(limit_minutes * 60);
  job.status = slurm_status(state);
  job.failure = failure_kind_from(state).value_or(FailureKind::Unknown);
  job.gpu_type = builder.intern(asked.gpu_type);
  job.user = builder.intern(text_of(member(item, "user")));
  job.group = builder.intern(text_of(member(item, "account")));
  job.queue = builder.intern(text_of(member(item, "partition")));
  job.name = builder.intern(text_of(member(item, "name")));
  builder.end_run(job, slurm_id_of(item), 0, end);
}

template <class Add>
Result<Trace> read_items(const Json& items, TraceBuilder builder, Add add, ReadReport* report) {
  builder.rows_are_items();
  std::size_t number = 0;
  for (const Json& item : items) {
    builder.begin_row(++number);
    if (item.is_object()) {
      add(builder, item);
    } else {
      builder.problem({.rule = "a job must be a JSON object"});
    }
  }
  return builder.finish(report);
}

}  // namespace

bool looks_like_json_list(const Sample& sample) {
  return trimmed(sample.bytes.substr(0, 4096)).starts_with('[');
}
bool looks_like_json_object(const Sample& sample) {
  return trimmed(sample.bytes.substr(0, 4096)).starts_with('{');
}

Result<Trace> read_philly_json(std::string_view bytes, const std::string& file,
                               const ReadOptions& options, ReadReport* report) {
  BERTH_TRY(const Json document, parse_json(bytes, file));
  if (!document.is_array())
    return fail(fmt::format("{}:1:1: must be a JSON list of jobs (is this another file?)", file));
  TraceBuilder builder(file, "philly", options);
  builder.note("run time is the sum of a job's attempts; local times are read as UTC");
  return read_items(document, std::move(builder), add_philly_job, report);
}

Result<Trace> read_sacct_json(std::string_view bytes, const std::string& file,
                              const ReadOptions& options, ReadReport* report) {
  BERTH_TRY(const Json document, parse_json(bytes, file));
  const Json& jobs = member(document, "jobs");
  if (!jobs.is_array())
    return fail(fmt::format("{}:1:1: has no list \"jobs\" (make it with sacct --json)", file));
  TraceBuilder builder(file, "sacct", options);
  builder.note("jobs still running in the log end with the time they had then");
  return read_items(jobs, std::move(builder), add_slurm_job, report);
}

}  // namespace berth
