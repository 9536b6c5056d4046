// One cell of a table into one field of a job: parse, check the range, report with column and rule.
// Rules about several fields of a row are in check_row().

#include "trace/cell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/suggest.h"
#include "trace/csv.h"

namespace berth {

namespace {

constexpr std::int64_t kMaxInt32 = 2'000'000'000;

// Column and rule make the message; the builder decides whether it is an error or a dropped row.
void reject(TraceBuilder& builder, const Cell& cell, std::string_view rule) {
  builder.problem({.column = cell.column,
                   .rule = fmt::format("{} {}", cell.column_name, rule),
                   .got = cell.text});
}

void store_instant(TraceBuilder& builder, const Cell& cell, Time& target) {
  const auto parsed = parse_instant(cell.text, cell.ticks_per_unit);
  if (!parsed.is_good()) return reject(builder, cell, parsed.broken_rule);
  target = parsed.value;
}

void store_instant(TraceBuilder& builder, const Cell& cell, std::optional<Time>& target) {
  Time time;
  store_instant(builder, cell, time);
  target = time;
}

void store_span(TraceBuilder& builder, const Cell& cell, Duration& target) {
  const auto parsed = parse_span(cell.text, cell.ticks_per_unit);
  if (!parsed.is_good()) return reject(builder, cell, parsed.broken_rule);
  target = parsed.value;
}

struct Range {
  std::int64_t least;
  std::int64_t most;
};

template <class Int>
void store_whole(TraceBuilder& builder, const Cell& cell, Range range, Int& target) {
  const auto parsed = parse_whole(cell.text);
  if (!parsed.is_good()) return reject(builder, cell, parsed.broken_rule);
  if (parsed.value < range.least)
    return reject(builder, cell, fmt::format("must be at least {}", range.least));
  if (parsed.value > range.most)
    return reject(builder, cell, fmt::format("must be at most {}", range.most));
  target = static_cast<Int>(parsed.value);
}

void store_flag(TraceBuilder& builder, const Cell& cell, bool& target) {
  std::int32_t flag = 0;
  store_whole(builder, cell, {0, 1}, flag);
  target = flag != 0;
}

// A real amount kept as a whole number of parts: CPUs in thousandths, gigabytes in MiB.
void store_parts(TraceBuilder& builder, const Cell& cell, double parts_per_unit,
                 std::int32_t& target) {
  const auto parsed = parse_real(cell.text);
  if (!parsed.is_good()) return reject(builder, cell, parsed.broken_rule);
  if (parsed.value < 0) return reject(builder, cell, "must not be negative");
  const double parts = parsed.value * parts_per_unit;
  if (parts > static_cast<double>(kMaxInt32)) {
    return reject(
        builder, cell,
        fmt::format("must be at most {:.0f}", static_cast<double>(kMaxInt32) / parts_per_unit));
  }
  target = static_cast<std::int32_t>(std::llround(parts));
}

void store_weight(TraceBuilder& builder, const Cell& cell, float& target) {
  const auto parsed = parse_real(cell.text);
  if (!parsed.is_good()) return reject(builder, cell, parsed.broken_rule);
  if (!(parsed.value > 0)) return reject(builder, cell, "must be greater than 0");
  if (parsed.value > 1e9 || parsed.value < 1e-9)
    return reject(builder, cell, "must lie between 1e-9 and 1e9");
  target = static_cast<float>(parsed.value);
}

void reject_word(TraceBuilder& builder, const Cell& cell, std::span<const std::string> known) {
  // The nearest known words are the remedy of this message.
  // suggestion() brings its own parentheses; the message adds them too.
  std::string remedy = suggestion(trimmed(cell.text), known);
  if (remedy.size() > 3) remedy = remedy.substr(2, remedy.size() - 3);
  builder.problem({.column = cell.column,
                   .rule = fmt::format("{} is not a known word", cell.column_name),
                   .got = cell.text,
                   .remedy = remedy});
}

void store_kind(TraceBuilder& builder, const Cell& cell, JobKind& target) {
  if (const auto kind = job_kind_from(trimmed(cell.text))) {
    target = *kind;
    return;
  }
  static const std::array<std::string, 5> kKinds{"training", "hpo", "debug", "interactive",
                                                 "service"};
  reject_word(builder, cell, kKinds);
}

void store_status(TraceBuilder& builder, const Cell& cell, TraceJob& job) {
  if (const auto status = trace_status_from(trimmed(cell.text))) {
    job.status = *status;
    // States such as OUT_OF_MEMORY also say why a job failed; a column `error` may say it better
    // and comes later in the list of columns.
    if (const auto kind = failure_kind_from(trimmed(cell.text))) job.failure = *kind;
    return;
  }
  static const std::array<std::string, 3> kStatuses{"completed", "failed", "killed"};
  reject_word(builder, cell, kStatuses);
}

void store_error(TraceBuilder& builder, const Cell& cell, FailureKind& target) {
  if (const auto kind = failure_kind_from(trimmed(cell.text))) {
    target = *kind;
    return;
  }
  static const std::array<std::string, 8> kErrors{
      "user", "oom", "syntax", "missing_input", "node_lost", "network", "infrastructure", "mpi"};
  reject_word(builder, cell, kErrors);
}

/// What the cells of a row say of the recorded run, not yet known to be complete: check_row() sees
/// to that.
RecordedRun& record_of(TraceJob& job) {
  if (!job.recorded)
    job.recorded = RecordedRun{.start = kNever, .end = kNever, .held = -Duration{1}};
  return *job.recorded;
}

/// Without a start or an end there is nothing to compare with.
void complete_record(TraceJob& job) {
  if (!job.recorded) return;
  RecordedRun& record = *job.recorded;
  if (record.start == kNever || record.end == kNever) return job.recorded.reset();
  if (record.held < Duration{}) record.held = std::max(Duration{}, record.end - record.start);
}

}  // namespace

void store_cell(TraceBuilder& builder, TraceJob& job, Field field, const Cell& cell) {
  const std::string_view word = trimmed(cell.text);
  switch (field) {
    case Field::Key: return;  // claimed when the row ends
    case Field::Submit: return store_instant(builder, cell, job.submit);
    case Field::Gpus: return store_whole(builder, cell, {cell.least_gpus, kMaxGpus}, job.gpus);
    case Field::RunTime: return store_span(builder, cell, job.duration);
    case Field::User: job.user = builder.intern(word); return;
    case Field::Group: job.group = builder.intern(word); return;
    case Field::Queue: job.queue = builder.intern(word); return;
    case Field::Name: job.name = builder.intern(word); return;
    case Field::Model: job.model = builder.intern(word); return;
    case Field::GpuType: job.gpu_type = builder.intern(word); return;
    case Field::Study: job.study = builder.intern(word); return;
    case Field::GpusMin: return store_whole(builder, cell, {1, kMaxGpus}, job.gpus_min);
    case Field::GpusMax: return store_whole(builder, cell, {1, kMaxGpus}, job.gpus_max);
    case Field::GpuMilli: return store_whole(builder, cell, {0, 1000}, job.gpu_milli);
    case Field::Cpus: return store_parts(builder, cell, 1000, job.cpus_milli);
    case Field::MemoryGb: return store_parts(builder, cell, 1024, job.memory_mib);
    case Field::BatchSize: return store_whole(builder, cell, {0, kMaxInt32}, job.batch_size);
    case Field::Iterations:
      return store_whole(builder, cell, {0, 1'000'000'000'000'000}, job.iterations);
    case Field::Deadline: return store_instant(builder, cell, job.deadline);
    case Field::SoftDeadline: return store_flag(builder, cell, job.soft_deadline);
    case Field::Priority: return store_whole(builder, cell, {-kMaxInt32, kMaxInt32}, job.priority);
    case Field::Weight: return store_weight(builder, cell, job.weight);
    case Field::Kind: return store_kind(builder, cell, job.kind);
    case Field::Status: return store_status(builder, cell, job);
    case Field::Error: return store_error(builder, cell, job.failure);
    case Field::FailedAttempts:
      return store_whole(builder, cell, {0, 1'000'000}, job.failed_attempts);
    case Field::Estimate: return store_span(builder, cell, job.estimate);
    case Field::CancelTime: return store_instant(builder, cell, job.cancel_at);
    case Field::RecordedStart: return store_instant(builder, cell, record_of(job).start);
    case Field::RecordedEnd: return store_instant(builder, cell, record_of(job).end);
    case Field::RecordedHeld: return store_span(builder, cell, record_of(job).held);
    case Field::Restarts:
      return store_whole(builder, cell, {0, kMaxRestarts}, record_of(job).restarts);
    case Field::Cut: return store_flag(builder, cell, record_of(job).is_cut);
    // Kept as text: only the format knows what it means, see TableFormat::complete.
    case Field::Text0:
    case Field::Text1:
    case Field::Text2:
    case Field::Text3:
    case Field::Text4:
    case Field::Text5:
    case Field::Text6:
    case Field::Text7:
    case Field::Text8:
    case Field::Text9:
    case Field::Text10:
    case Field::Text11:
    case Field::Text12:
    case Field::Text13: return;  // for the format's own function
  }
}

void check_row(TraceBuilder& builder, TraceJob& job, std::size_t gpus_column) {
  const auto broken = [&](const char* rule) {
    builder.problem({.column = gpus_column, .rule = rule});
  };
  complete_record(job);
  if (job.gpus < 1)
    return builder.problem({.column = gpus_column, .rule = "gpus must be at least 1", .got = "0"});
  if (job.gpus_min != 0 || job.gpus_max != 0) {
    // One bound alone is a range that ends at the requested size.
    if (job.gpus_min == 0) job.gpus_min = job.gpus;
    if (job.gpus_max == 0) job.gpus_max = job.gpus;
    if (job.gpus_min > job.gpus_max) return broken("gpus_min must not exceed gpus_max");
    if (job.gpus_min > job.gpus) return broken("gpus_min must not exceed gpus");
    if (job.gpus_max < job.gpus) return broken("gpus_max must not be below gpus");
  }
  // A share of several devices has no meaning: which of them would be shared?
  if (job.gpu_milli != 1000 && job.gpus != 1) broken("gpu_milli below 1000 needs gpus = 1");
  if (job.deadline && *job.deadline < job.submit) broken("deadline must not be before submit_time");
  if (job.cancel_at && *job.cancel_at < job.submit)
    broken("cancel_time must not be before submit_time");
}

}  // namespace berth
