// What the journal holds: one record for each thing that must survive. Records are facts and
// wishes, in the order in which they were taken; the ledger (store/ledger.h) is what they add up
// to. Each kind has a JSON body, so that a newer version can add fields and an older journal can
// be read.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/attempt.h"
#include "model/job_spec.h"
#include "model/step.h"

namespace berth {

/// One try to run a job, never used again: which life of the scheduler made it, and its count
/// there.
struct AttemptId {
  std::uint64_t generation = 0;
  std::uint64_t counter = 0;
  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
  [[nodiscard]] bool is_none() const noexcept { return generation == 0; }
};
[[nodiscard]] std::string to_text(AttemptId attempt);  // "3.17"
[[nodiscard]] std::optional<AttemptId> attempt_from(std::string_view text) noexcept;

/// The scheduler began a life. Written and synced before anything else.
struct LifeRecord {
  std::uint64_t generation = 0;
  std::string boot_id{};        // of the machine: clocks compare only within one boot
  std::int64_t boot_clock = 0;  // microseconds since that boot
  std::string version{};
};
/// Accepted: from now on the job is never lost. An array takes consecutive numbers from `first`.
struct SubmitRecord {
  JobNumber first = 0;
  JobSpec spec{};
};
/// The scheduler will start an attempt on these devices. Synced before the process is made.
struct IntentRecord {
  JobNumber job = 0;
  AttemptId attempt{};
  std::vector<HeldDevices> where{};
  std::int32_t gpus = 0;
  std::string reason{};
};
/// A hint; recovery does not need it.
struct StartedRecord {
  JobNumber job = 0;
  AttemptId attempt{};
  std::int64_t pid = 0;
};
enum class Wish : std::uint8_t { Hold, Release, Cancel, Preempt, Suspend, Resume, Requeue };
[[nodiscard]] std::string_view to_string(Wish wish) noexcept;  // "cancel": the word of a Verb
[[nodiscard]] std::string_view done_word(Wish wish) noexcept;  // "cancelled"
[[nodiscard]] std::optional<Wish> wish_from(std::string_view text) noexcept;
/// Who wishes, if no person does; no user can be called so.
inline constexpr const char* kSchedulerName = "@scheduler";
/// Somebody wants something of a job; what comes of it is told by its end. A suspend by the
/// scheduler ends a slice of time; one by a person lasts until a person resumes the job.
struct WishRecord {
  JobNumber job = 0;
  Wish wish{};
  std::string by{};                   // user, or kSchedulerName
  std::string why{};                  // for people
  std::vector<JobNumber> for_jobs{};  // of a preemption: whoever was given its devices
};
/// The attempt is over and its processes are gone. `is_final`: so is the job.
struct EndRecord {
  JobNumber job = 0;
  AttemptId attempt{};  // none if the job never ran
  Outcome outcome{};
  bool is_final = true;
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  double gpu_seconds = 0;        // held by this attempt
  double run_seconds = 0;        // in which it was not suspended
  double suspended_seconds = 0;  // in which it was
  double joules = 0;             // that this attempt is charged
  std::string why{};             // for people; may be empty
  double cpu_seconds = 0;
  std::int64_t max_rss_kib = 0;  // of its largest process
  std::vector<StepView> steps{};
};
/// What the user or an operator changed: the keys of JobSpec as JSON.
struct ChangeRecord {
  JobNumber job = 0;
  std::string changes{};  // JSON object
  std::string by{};
};
/// Settings of the scheduler itself: policy, quotas, node states, tokens. Latest value of a key
/// counts; an empty value removes it.
struct SettingRecord {
  std::string key{};    // "policy", "node/n1", "quota/group/ml"
  std::string value{};  // JSON
  std::string by{};
};

/// The attempt goes on with these devices. With more: written before its code is asked to take
/// them; with fewer: once it has left the others. So that what is on record is never less than it
/// uses.
struct ResizeRecord {
  JobNumber job = 0;
  AttemptId attempt{};
  std::vector<HeldDevices> where{};
  std::int32_t gpus = 0;
  /// What it held until now beyond `gpus` for its whole time, in GPU seconds; below zero after it
  /// has grown.
  double extra_gpu_seconds = 0;
  std::string reason{};
};

/// A pass of the engine, as its log tells it (core/engine_log.h): what it was told from outside.
/// Kept beside the journal, and only since the last one that `begins`: the ledger does not know of
/// it.
struct EngineRecord {
  bool begins = false;  // a new engine: `bytes` say which, and what was before is forgotten
  std::string bytes{};
};

using RecordBody = std::variant<LifeRecord, SubmitRecord, IntentRecord, StartedRecord, WishRecord,
                                EndRecord, ChangeRecord, SettingRecord, ResizeRecord, EngineRecord>;

struct Record {
  Time at;                // the engine's clock: monotone over restarts
  std::int64_t wall = 0;  // Unix microseconds: a note for people
  RecordBody body;
};

[[nodiscard]] std::string_view kind_of(const RecordBody& body) noexcept;  // "submit", "intent" …
[[nodiscard]] std::string encode(const RecordBody& body);                 // JSON
[[nodiscard]] Result<RecordBody> decode(std::string_view kind, std::string_view json);

}  // namespace berth
