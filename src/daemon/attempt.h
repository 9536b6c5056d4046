// One attempt to run a job, as the supervisor knows it while its processes may be alive, and the
// end of one. Plain data.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/action.h"
#include "daemon/verdict.h"
#include "store/ledger.h"
#include "training/training_channel.h"

namespace berth {

struct Attempt {
  AttemptId id;
  JobNumber job = 0;
  std::vector<Slice> slices;
  std::vector<HeldDevices> where;
  std::int32_t gpus = 0;
  Time since;
  Ending ending = Ending::ByItself;
  bool is_granted = false;     // the engine knows it is there; else it is about to go or unclaimed
  bool is_left_alone = false;  // the engine has forgotten it on purpose; it ends by itself
  bool is_suspended = false;   // by the engine: its slice is over
  bool is_frozen = false;      // by a person; the engine does not know
  bool is_running = false;     // the program was seen to run
  std::int32_t rate_milli = 1000;  // how much of the time it runs
  std::string ending_why{};        // of Cancel and Kill; empty: not known any more
  std::int64_t pid = 0;
  double extra_gpu_seconds = 0;    // beyond `gpus` for its whole time: it had another size before
  std::vector<Slice> requested{};  // what its code was last asked to use; empty: its first devices
  bool is_set = false;             // its code cannot go on with other devices, or did not answer
  bool is_silent = false;          // it did not: nobody asks it any more
  /// Up to when the engine has counted the time it holds devices, and its work; the first may be to
  /// come. kNever: it sleeps.
  Time held_counted{}, work_counted{};
};

/// The end of an attempt, already judged and on its way into the journal.
struct AttemptEnd {
  JobNumber job = 0;
  Verdict verdict;
  double gpu_seconds = 0;
  Ending ending = Ending::ByItself;  // what was wanted of it; it may have ended otherwise
  /// It failed by itself, and the policy says whether it is tried again: see
  /// JobSupervisor::answer().
  std::optional<FailureKind> asks_policy{};
};

/// What holds whatever the policy.
struct SupervisorRules {
  Duration min_run{};  // an attempt is not preempted before
  /// The job has shown that it can save its work; what its spec says is known.
  std::function<bool(JobNumber)> saves = {};
  bool policy_retries = false;  // whether a failed attempt is repeated the policy says
  /// Who can be asked before anybody is stopped; may be absent. Without an answer so long it is as
  /// if it had not been asked.
  TrainingChannel* training = nullptr;
  Duration answer = std::chrono::seconds{10};
  /// Somebody else keeps the queue: a job that could not be started is tried for as long as it is
  /// there, and a failure ends it there whatever a policy says.
  bool is_queue_elsewhere = false;
};

/// What ends it: for good if nobody wants its job to run again.
[[nodiscard]] constexpr bool is_for_good(Ending ending) noexcept {
  return ending == Ending::Cancel || ending == Ending::Kill;
}

/// A job as it is on record; nothing: it is over.
using JobLookup = std::function<std::optional<LedgerJob>(JobNumber)>;

}  // namespace berth
