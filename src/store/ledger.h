// What the records add up to: every job that is not over, in full, and the settings. A pure fold:
// the running scheduler and recovery use the same apply(), so that what is rebuilt after a crash is
// what would have been there. Jobs that are over leave the ledger for the store's table of past
// jobs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "store/record.h"

namespace berth {

/// An attempt that may still be alive: it holds its devices.
struct LiveAttempt {
  AttemptId id;
  std::vector<HeldDevices> where{};
  std::int32_t gpus = 0;
  Time since{};                  // of the intent
  std::int64_t wall = 0;         // of the intent
  bool is_suspended = false;     // by the scheduler: its slice of time is over
  double extra_gpu_seconds = 0;  // beyond `gpus` for its whole time: it had another size before
  /// Since when it has been suspended, by whomever, and for how long before. For people: not part of
  /// the digest, for rows of older versions do not know it.
  std::int64_t suspended_wall = 0;  // 0: it is not
  double suspended_seconds = 0;
};

struct LedgerJob {
  JobNumber number = 0;
  std::shared_ptr<const JobSpec> spec;  // shared by the jobs of an array until one is changed
  JobNumber array = 0;                  // number of its first job; 0: no array
  std::int32_t array_index = 0;
  Time submitted;
  std::int64_t submitted_wall = 0;
  bool is_held = false;
  std::string held_by, held_why;
  /// Suspended by a person, whatever becomes of the attempt: without one it does not start.
  bool is_frozen = false;
  std::string frozen_by{}, frozen_why{};
  /// For whom it has made way so far, in order, the last hundred.
  std::vector<JobNumber> made_way{};
  std::optional<Wish> stopping;  // Cancel, Preempt or Requeue is under way
  std::optional<LiveAttempt> attempt;
  std::int32_t attempts = 0;  // begun so far
  std::int32_t failures = 0;  // ended by a failure of their own
  std::int32_t preemptions = 0;
  std::optional<Time> first_start;
  std::int64_t first_start_wall = 0;
  double gpu_seconds = 0;  // of attempts that are over
  double run_seconds = 0;
  double joules = 0;
};

/// A job that is over, for history, accounting and dependencies.
struct PastJob {
  LedgerJob job;  // as it was at its end; no attempt
  Outcome outcome{};
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  Time ended;
  std::int64_t ended_wall = 0;
  std::string why;
  std::vector<HeldDevices> where;  // of the last attempt, as the next three
  std::int64_t last_start_wall = 0;
  std::optional<double> last_run_seconds{};  // older versions did not write it down
  double suspended_seconds = 0;
};

class Ledger {
 public:
  /// What applying a record did to a job.
  struct Change {
    JobNumber job = 0;
    std::int32_t count = 1;         // jobs of an array
    std::optional<LedgerJob> live;  // the job as it is now; of an array the first
    std::optional<PastJob> past;    // the job is over
  };
  /// An error is a record that cannot follow the ones before it: a damaged journal, our mistake, or
  /// a wish that came too late (the job is over, or does not run). It has changed nothing.
  /// Wishes come from people, between any two records of the engine: what it decided before it had
  /// heard of them is legal. A pass stamps its records when it begins, so that a record may be a
  /// little older than the one before; now() never goes back.
  /// Costs O(log jobs), for a submit also its number of jobs.
  /// A submit or a change that leaves a job with numbers that no job can have is refused as well.
  [[nodiscard]] Result<Change> apply(const Record& record);
  /// The same for a record that is on disk already: older versions wrote down changes as they were
  /// asked for, and such a job is set aside later rather than keep the journal from being read.
  [[nodiscard]] Result<Change> replay(const Record& record);

  [[nodiscard]] const LedgerJob* find(JobNumber job) const noexcept;
  /// In order of number.
  [[nodiscard]] const std::map<JobNumber, LedgerJob>& jobs() const noexcept { return jobs_; }
  /// A live job made with this key by this user.
  [[nodiscard]] std::optional<JobNumber> by_key(std::string_view user, std::string_view key) const;
  [[nodiscard]] JobNumber next_number() const noexcept { return next_number_; }
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  [[nodiscard]] Time now() const noexcept { return now_; }  // of the last record
  [[nodiscard]] const std::map<std::string, std::string>& settings() const noexcept {
    return settings_;
  }
  /// For recovery from tables rather than from the first record.
  void restore(std::map<JobNumber, LedgerJob> jobs, std::map<std::string, std::string> settings,
               JobNumber next_number, std::uint64_t generation, Time now,
               AttemptId last_attempt = {});
  [[nodiscard]] AttemptId last_attempt() const noexcept { return last_attempt_; }
  /// Equal ledgers have equal digests.
  [[nodiscard]] std::string digest() const;

 private:
  struct Folder;
  enum class Source : std::uint8_t { Asked, OnDisk };
  [[nodiscard]] Result<Change> fold(const Record& record, Source source);
  std::map<JobNumber, LedgerJob> jobs_;
  std::map<std::string, std::string> settings_;
  std::map<std::pair<std::string, std::string>, JobNumber> keys_;
  JobNumber next_number_ = 1;
  std::uint64_t generation_ = 0;
  Time now_{};
  AttemptId last_attempt_{};
};

}  // namespace berth
