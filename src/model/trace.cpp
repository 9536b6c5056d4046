// Jobs in the order of their submission and on a clock of their own, and the words that traces use
// for how a job ended. The order is total, so that equal traces give equal job ids.

#include "model/trace.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <utility>

namespace berth {

namespace {

/// First submits beyond this (three years) are read as a calendar, not as seconds since the trace
/// began.
constexpr Duration kCalendar = std::chrono::hours{24 * 365 * 3};

bool all_digits(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

// Numbers before words, and by value: job 9 comes before job 10.
bool external_id_less(std::string_view a, std::string_view b) noexcept {
  const bool a_number = all_digits(a);
  const bool b_number = all_digits(b);
  if (a_number != b_number) return a_number;
  if (!a_number) return a < b;
  const auto significant = [](std::string_view text) {
    const auto first = text.find_first_not_of('0');
    return first == std::string_view::npos ? std::string_view{} : text.substr(first);
  };
  const auto x = significant(a);
  const auto y = significant(b);
  return std::tuple(x.size(), x, a) < std::tuple(y.size(), y, b);  // "07" after "7": still total
}

void Trace::normalise() {
  std::ranges::sort(jobs, [this](const TraceJob& a, const TraceJob& b) {
    if (a.submit != b.submit) return a.submit < b.submit;
    return external_id_less(text(a.id), text(b.id));
  });
  if (jobs.empty()) return;
  const Duration first = jobs.front().submit.time_since_epoch();
  // Seconds since the beginning of a trace stay as they are; dates are moved to begin at zero, and
  // zero_seconds remembers by how much.
  const bool relative = first >= Duration::zero() && first < kCalendar;
  const Duration shift = relative ? Duration::zero() : first;
  zero_seconds += to_seconds(shift);
  for (TraceJob& job : jobs) {
    job.submit -= shift;
    if (job.deadline) *job.deadline -= shift;
    if (job.cancel_at) *job.cancel_at -= shift;
    if (job.recorded) {
      job.recorded->start -= shift;
      job.recorded->end -= shift;
    }
  }
}

std::string_view to_string(JobKind kind) noexcept {
  switch (kind) {
    case JobKind::Training: return "training";
    case JobKind::Hpo: return "hpo";
    case JobKind::Debug: return "debug";
    case JobKind::Interactive: return "interactive";
    case JobKind::Service: return "service";
  }
  return "training";
}

std::optional<JobKind> job_kind_from(std::string_view text) noexcept {
  const std::string word = lower(text);
  for (const JobKind kind :
       {JobKind::Training, JobKind::Hpo, JobKind::Debug, JobKind::Interactive, JobKind::Service}) {
    if (word == to_string(kind)) return kind;
  }
  return std::nullopt;
}

std::string_view to_string(TraceStatus status) noexcept {
  switch (status) {
    case TraceStatus::Completed: return "completed";
    case TraceStatus::Failed: return "failed";
    case TraceStatus::Killed: return "killed";
  }
  return "completed";
}

std::optional<TraceStatus> trace_status_from(std::string_view text) noexcept {
  // The words of common logs. What still ran when a log was taken counts as completed.
  static constexpr std::array<std::pair<std::string_view, TraceStatus>, 22> kWords{{
      {"completed", TraceStatus::Completed},  {"complete", TraceStatus::Completed},
      {"pass", TraceStatus::Completed},       {"passed", TraceStatus::Completed},
      {"succeeded", TraceStatus::Completed},  {"success", TraceStatus::Completed},
      {"terminated", TraceStatus::Completed}, {"running", TraceStatus::Completed},
      {"failed", TraceStatus::Failed},        {"fail", TraceStatus::Failed},
      {"node_fail", TraceStatus::Failed},     {"out_of_memory", TraceStatus::Failed},
      {"boot_fail", TraceStatus::Failed},     {"unsuccessful", TraceStatus::Failed},
      {"killed", TraceStatus::Killed},        {"cancelled", TraceStatus::Killed},
      {"canceled", TraceStatus::Killed},      {"timeout", TraceStatus::Killed},
      {"deadline", TraceStatus::Killed},      {"preempted", TraceStatus::Killed},
      {"revoked", TraceStatus::Killed},       {"stopped", TraceStatus::Killed},
  }};
  const std::string word = lower(text);
  for (const auto& [name, status] : kWords) {
    if (word == name) return status;
  }
  return std::nullopt;
}

std::string_view to_string(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::Unknown: return "";
    case FailureKind::User: return "user";
    case FailureKind::Infrastructure: return "infrastructure";
  }
  return "";
}

std::optional<FailureKind> failure_kind_from(std::string_view text) noexcept {
  static constexpr std::array<std::string_view, 9> kUser{
      "user",          "oom",    "out_of_memory",     "syntax",          "import",
      "missing_input", "config", "permission_denied", "invalid_argument"};
  static constexpr std::array<std::string_view, 9> kInfrastructure{
      "infrastructure", "node_lost", "node_fail", "boot_fail", "mpi",
      "network",        "gpu_ecc",   "ecc",       "storage"};
  std::string word = lower(text);
  // "Node Lost", "node-lost" and "node_lost" are one.
  std::ranges::replace(word, ' ', '_');
  std::ranges::replace(word, '-', '_');
  if (std::ranges::find(kUser, word) != kUser.end()) return FailureKind::User;
  if (std::ranges::find(kInfrastructure, word) != kInfrastructure.end())
    return FailureKind::Infrastructure;
  return std::nullopt;
}

}  // namespace berth
