// What a trace file says: jobs as their users submitted them and as they really ran. The truth
// columns (duration, status) belong to the simulator; policies see requests and estimates only.
//
// A Trace is normalised once, after reading: rows in order of (submit, id). From then on a JobId is
// the row number, and "smaller submit, then smaller id" is simply "<". Seconds keep the file's own
// zero; calendar times (ISO, Unix) count from the first submit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/names.h"
#include "base/time.h"

namespace berth {

enum class JobKind : std::uint8_t { Training, Hpo, Debug, Interactive, Service };

/// How a job ended in reality: a failed or killed job runs for its traced duration and then ends
/// so.
enum class TraceStatus : std::uint8_t { Completed, Failed, Killed };

/// Why attempts of a job fail: what the user got wrong (a program that does not start, missing
/// input, too little memory) fails again, what the cluster did (a lost node, the network, a broken
/// device) may not.
enum class FailureKind : std::uint8_t { Unknown, User, Infrastructure };

/// What the user asked for and said: all that a policy may see without declaring a need.
struct JobRequest {
  NameId id;  // as the file spells it; unique in a trace
  Time submit;
  std::int32_t gpus = 1;      // the gang; all or nothing
  std::int32_t gpus_min = 0;  // elastic range; 0 = not elastic
  std::int32_t gpus_max = 0;
  std::int32_t gpu_milli = 1000;  // share of one device a single-GPU job asks for; 0 = cores alone
  std::int32_t cpus_milli = 0;    // for the whole gang; 0 = not stated
  std::int32_t memory_mib = 0;    // host memory for the whole gang; 0 = not stated
  std::int32_t batch_size = 0;
  std::int32_t priority = 0;  // larger is more urgent
  float weight = 1.0F;
  JobKind kind = JobKind::Training;
  bool preemptible = true;  // it may be stopped and continued later
  std::int64_t iterations = 0;
  NameId user, group, queue, name, model, study;
  NameId gpu_type;  // acceptable types, "a100|v100" in order of preference; empty = any
  friend bool operator==(const JobRequest&, const JobRequest&) = default;
};

/// What really became of a job, where the source tells it: from its first start to the end of its
/// last run.
struct RecordedRun {
  Time start;                 // first held devices
  Time end;                   // held none any more
  Duration held{};            // held devices, over all of its runs
  std::int32_t restarts = 0;  // times it was put back into the queue after a run
  bool is_cut = false;        // it was not over: the record ends here
  friend bool operator==(const RecordedRun&, const RecordedRun&) = default;
};

/// A request together with what must be declared to be read (deadline, the user's estimate) and
/// with the truth that only the simulator and the oracle know.
struct TraceJob : JobRequest {
  Duration duration{};  // truth: run time at the reference placement and requested size
  Duration estimate{};  // what the user said (wall-time limit); zero = nothing said
  TraceStatus status = TraceStatus::Completed;
  FailureKind failure = FailureKind::Unknown;  // of a failed one
  std::int32_t failed_attempts = 0;  // of a failed one: so many fail, the next completes; 0 = all
  std::optional<Time> deadline;      // absolute
  bool soft_deadline = false;        // it may be missed, at a price
  std::optional<Time> cancel_at;     // the user cancels then, if the job has not ended
  std::optional<RecordedRun> recorded;  // only reports look at it
  friend bool operator==(const TraceJob&, const TraceJob&) = default;
};

struct Trace {
  std::string source;  // file or generator, for messages and reports
  std::string format;  // which reader understood it
  Names names;
  std::vector<TraceJob> jobs;
  double zero_seconds = 0;         // the file's own time of our time zero
  std::vector<std::string> notes;  // what the reader left out or assumed, for people

  [[nodiscard]] std::string_view text(NameId id) const { return names.text(id); }
  /// Sorts by (submit, id: numbers by value, then texts); calendar clocks are shifted to the first
  /// submit.
  void normalise();
};

/// The order of external ids: all-digit ids by value, before others by text.
[[nodiscard]] bool external_id_less(std::string_view a, std::string_view b) noexcept;

[[nodiscard]] std::string_view to_string(JobKind kind) noexcept;
[[nodiscard]] std::optional<JobKind> job_kind_from(std::string_view text) noexcept;
[[nodiscard]] std::string_view to_string(TraceStatus status) noexcept;
/// Understands the words of the common traces ("Pass", "COMPLETED", "Killed", "cancelled", …).
[[nodiscard]] std::optional<TraceStatus> trace_status_from(std::string_view text) noexcept;
[[nodiscard]] std::string_view to_string(FailureKind kind) noexcept;
/// Of an error by its name ("oom", "node_lost", "mpi", …) or of a status that says more than
/// "failed" ("NODE_FAIL", "OUT_OF_MEMORY").
[[nodiscard]] std::optional<FailureKind> failure_kind_from(std::string_view text) noexcept;

}  // namespace berth
