// The native CSV. A column is written if any job uses it; times are on the file's own clock, so
// that reading gives the same jobs again.

#include "trace/writer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"

namespace berth {

namespace {

using Out = std::back_insert_iterator<std::string>;

// A whole number of parts as a decimal, with as many places as it needs.
// In integers, so that no digit is invented: 0.1 stays 0.1.
void put_decimal(std::string& out, std::int64_t parts, std::int64_t parts_per_unit, int places) {
  fmt::format_to(Out(out), "{}", parts / parts_per_unit);
  const std::int64_t fraction = parts % parts_per_unit;
  if (fraction == 0) return;
  std::string digits = fmt::format("{:0{}}", fraction, places);
  digits.erase(digits.find_last_not_of('0') + 1);
  out += '.';
  out += digits;
}

void put_ticks(std::string& out, Duration ticks) { put_decimal(out, ticks.count(), 1'000'000, 6); }

// 1/1024 has ten decimals, so the number is exact.
void put_gigabytes(std::string& out, std::int32_t mib) {
  constexpr std::int64_t kTenPlaces = 10'000'000'000;
  put_decimal(out, mib * (kTenPlaces / 1024), kTenPlaces, 10);
}

void put_text(std::string& out, std::string_view text) {
  // Readers trim what is not quoted.
  const bool edge_blank = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!edge_blank && text.find_first_of(",\"\n\r\t;|") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

struct Row {
  const Trace& trace;
  const TraceJob& job;
  Duration zero;  // what reading subtracted
};

struct CsvColumn {
  std::string_view name;
  bool (*is_used)(const TraceJob& job);
  void (*put)(std::string& out, const Row& row);
};

template <auto member>
bool has_name(const TraceJob& job) {
  return job.*member != NameId{};
}
template <auto member>
void put_name(std::string& out, const Row& row) {
  put_text(out, row.trace.text(row.job.*member));
}
template <auto member>
bool is_nonzero(const TraceJob& job) {
  return job.*member != 0;
}
template <auto member>
void put_number(std::string& out, const Row& row) {
  if (row.job.*member != 0) fmt::format_to(Out(out), "{}", row.job.*member);
}
template <auto member>
bool has_time(const TraceJob& job) {
  return (job.*member).has_value();
}
template <auto member>
void put_time(std::string& out, const Row& row) {
  if (row.job.*member) put_ticks(out, (row.job.*member)->time_since_epoch() + row.zero);
}

bool always(const TraceJob&) { return true; }

constexpr std::array kColumns{
    CsvColumn{"job_id", always, put_name<&TraceJob::id>},
    CsvColumn{"submit_time", always,
              [](std::string& out, const Row& row) {
                put_ticks(out, row.job.submit.time_since_epoch() + row.zero);
              }},
    CsvColumn{"gpus", always, put_number<&TraceJob::gpus>},
    CsvColumn{"duration", always,
              [](std::string& out, const Row& row) { put_ticks(out, row.job.duration); }},
    CsvColumn{"user", has_name<&TraceJob::user>, put_name<&TraceJob::user>},
    CsvColumn{"group", has_name<&TraceJob::group>, put_name<&TraceJob::group>},
    CsvColumn{"queue", has_name<&TraceJob::queue>, put_name<&TraceJob::queue>},
    CsvColumn{"name", has_name<&TraceJob::name>, put_name<&TraceJob::name>},
    CsvColumn{"model", has_name<&TraceJob::model>, put_name<&TraceJob::model>},
    CsvColumn{"gpu_type", has_name<&TraceJob::gpu_type>, put_name<&TraceJob::gpu_type>},
    CsvColumn{"gpus_min", is_nonzero<&TraceJob::gpus_min>, put_number<&TraceJob::gpus_min>},
    CsvColumn{"gpus_max", is_nonzero<&TraceJob::gpus_max>, put_number<&TraceJob::gpus_max>},
    CsvColumn{"gpu_milli", [](const TraceJob& job) { return job.gpu_milli != 1000; },
              // 0 is a job without a device: an empty cell would be read as a whole one.
              [](std::string& out, const Row& row) {
                fmt::format_to(Out(out), "{}", row.job.gpu_milli);
              }},
    CsvColumn{"cpus", is_nonzero<&TraceJob::cpus_milli>,
              [](std::string& out, const Row& row) {
                if (row.job.cpus_milli != 0) put_decimal(out, row.job.cpus_milli, 1000, 3);
              }},
    CsvColumn{"memory_gb", is_nonzero<&TraceJob::memory_mib>,
              [](std::string& out, const Row& row) {
                if (row.job.memory_mib != 0) put_gigabytes(out, row.job.memory_mib);
              }},
    CsvColumn{"batch_size", is_nonzero<&TraceJob::batch_size>, put_number<&TraceJob::batch_size>},
    CsvColumn{"iterations", is_nonzero<&TraceJob::iterations>, put_number<&TraceJob::iterations>},
    CsvColumn{"deadline", has_time<&TraceJob::deadline>, put_time<&TraceJob::deadline>},
    CsvColumn{"soft_deadline", [](const TraceJob& job) { return job.soft_deadline; },
              [](std::string& out, const Row& row) { out += row.job.soft_deadline ? "1" : "0"; }},
    CsvColumn{"priority", is_nonzero<&TraceJob::priority>, put_number<&TraceJob::priority>},
    CsvColumn{
        "weight", [](const TraceJob& job) { return job.weight != 1.0F; },
        [](std::string& out, const Row& row) { fmt::format_to(Out(out), "{}", row.job.weight); }},
    CsvColumn{"kind", [](const TraceJob& job) { return job.kind != JobKind::Training; },
              [](std::string& out, const Row& row) { out += to_string(row.job.kind); }},
    CsvColumn{"study", has_name<&TraceJob::study>, put_name<&TraceJob::study>},
    CsvColumn{"status", [](const TraceJob& job) { return job.status != TraceStatus::Completed; },
              [](std::string& out, const Row& row) { out += to_string(row.job.status); }},
    CsvColumn{"error", [](const TraceJob& job) { return job.failure != FailureKind::Unknown; },
              [](std::string& out, const Row& row) { out += to_string(row.job.failure); }},
    CsvColumn{"failed_attempts", is_nonzero<&TraceJob::failed_attempts>,
              put_number<&TraceJob::failed_attempts>},
    CsvColumn{"estimate", [](const TraceJob& job) { return job.estimate != Duration{}; },
              [](std::string& out, const Row& row) {
                if (row.job.estimate != Duration{}) put_ticks(out, row.job.estimate);
              }},
    CsvColumn{"cancel_time", has_time<&TraceJob::cancel_at>, put_time<&TraceJob::cancel_at>},
    CsvColumn{"start_time", has_time<&TraceJob::recorded>,
              [](std::string& out, const Row& row) {
                if (row.job.recorded)
                  put_ticks(out, row.job.recorded->start.time_since_epoch() + row.zero);
              }},
    CsvColumn{"finish_time", has_time<&TraceJob::recorded>,
              [](std::string& out, const Row& row) {
                if (row.job.recorded)
                  put_ticks(out, row.job.recorded->end.time_since_epoch() + row.zero);
              }},
    CsvColumn{"run_time",
              [](const TraceJob& job) {
                return job.recorded &&
                       job.recorded->held != job.recorded->end - job.recorded->start;
              },
              [](std::string& out, const Row& row) {
                if (row.job.recorded) put_ticks(out, row.job.recorded->held);
              }},
    CsvColumn{"restarts",
              [](const TraceJob& job) { return job.recorded && job.recorded->restarts != 0; },
              [](std::string& out, const Row& row) {
                if (row.job.recorded) fmt::format_to(Out(out), "{}", row.job.recorded->restarts);
              }},
    CsvColumn{"cut", [](const TraceJob& job) { return job.recorded && job.recorded->is_cut; },
              [](std::string& out, const Row& row) {
                if (row.job.recorded) out += row.job.recorded->is_cut ? "1" : "0";
              }},
};

}  // namespace

std::string trace_to_csv(const Trace& trace, const std::function<double(const TraceJob&)>& energy) {
  std::vector<const CsvColumn*> columns;
  for (const CsvColumn& column : kColumns) {
    if (std::ranges::any_of(trace.jobs, column.is_used) || column.is_used == always)
      columns.push_back(&column);
  }
  const bool has_energy = energy && std::ranges::any_of(trace.jobs, [&](const TraceJob& job) {
                            return energy(job) > 0;
                          });
  std::string out;
  out.reserve((trace.jobs.size() + 1) * columns.size() * 8);
  for (const CsvColumn* column : columns) {
    if (column != columns.front()) out += ',';
    out += column->name;
  }
  if (has_energy) fmt::format_to(Out(out), ",{}", kEnergyColumn);
  out += '\n';
  const Duration zero = seconds_to_duration(trace.zero_seconds);
  for (const TraceJob& job : trace.jobs) {
    for (const CsvColumn* column : columns) {
      if (column != columns.front()) out += ',';
      column->put(out, {trace, job, zero});
    }
    if (has_energy) fmt::format_to(Out(out), ",{:.9g}", energy(job));
    out += '\n';
  }
  return out;
}

Result<void> write_trace_csv(const Trace& trace, const std::string& path) {
  return write_file(path, trace_to_csv(trace));
}

}  // namespace berth
