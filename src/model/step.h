// A step: one run of tasks inside a job, by srun or by the job's own script ("batch"). As it is
// kept in the job's directory of steps, on record, and shown; described in wire/step_fields.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/job_spec.h"

namespace berth {

enum class StepState : std::uint8_t {
  Running,
  Completed,  // every task left with exit code 0
  Failed,     // some task did not
  Cancelled,  // by a signal from outside, or it ended with its job
  OutOfMemory,
  TimedOut,  // over its own limit
};
/// Kept in the journal, so they never change.
inline constexpr std::array<std::pair<StepState, std::string_view>, 6> kStepStateNames{{
    {StepState::Running, "running"},
    {StepState::Completed, "completed"},
    {StepState::Failed, "failed"},
    {StepState::Cancelled, "cancelled"},
    {StepState::OutOfMemory, "out-of-memory"},
    {StepState::TimedOut, "timed-out"},
}};

struct StepView {
  std::string id;    // "batch", "interactive", or a number from 0
  std::string name;  // of its program, unless it was given one
  StepState state = StepState::Running;
  std::int32_t tasks = 1;
  std::int32_t cpus = 0;              // cores it takes; 0: not known
  std::vector<std::int32_t> devices;  // of its job's
  std::vector<std::int32_t> cores;    // it is bound to; empty: any of its job's
  bool overlaps = false;              // takes nothing for itself
  bool shares_devices = false;        // sees them, and leaves them to others as well
  std::int64_t begun = 0, ended = 0;  // Unix microseconds; 0: not yet
  std::int32_t exit_code = 0, signal = 0;
  double cpu_seconds = 0;        // of the tasks that are over
  std::int64_t max_rss_kib = 0;  // of the largest of them
  std::int64_t pid = 0;          // of the process that keeps it
  friend bool operator==(const StepView&, const StepView&) = default;
};

inline constexpr const char* kBatchStep = "batch";
inline constexpr const char* kInteractiveStep = "interactive";
/// Of one attempt, so many are on record.
inline constexpr std::size_t kMostSteps = 1'000;

/// The steps of a job's last attempt.
struct JobSteps {
  JobNumber job = 0;
  std::string
      directory{};  // where they are kept; empty: it does not run, or is none of the asker's
  std::vector<StepView> steps{};
};
struct JobStepsList {
  std::vector<JobSteps> jobs;
};

/// In the environment of a job: the directory of its steps.
inline constexpr const char* kStepsVariable = "BERTH_STEPS";

}  // namespace berth
