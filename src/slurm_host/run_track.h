// One attempt on its way through Slurm: what each reading means for it, and what is to be sent
// next. Nothing is remembered of what was sent but that it was: whether it was done only a reading
// tells, and what is wanted and is not so is sent again after the next one.
//
//   Ordered   nobody has placed it; it has no claim in the journal
//   Placed    its claim is there and the order to Slurm may have been sent, and done
//   Running   Slurm was seen to run it
//
// An attempt is void only when its job was held after its order, and was seen held after that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/host.h"
#include "slurm/link.h"
#include "slurm_host/claim.h"

namespace berth {

enum class RunStage : std::uint8_t { Ordered, Placed, Running };

/// What the scheduler wants of it.
struct RunWish {
  bool stop = false;
  bool is_for_good = false;  // its job is to be over as well
  std::int64_t grace = 0;    // seconds between its warning and its end
  bool is_suspended = false;
};

struct RunTrack {
  AttemptId attempt{};
  JobNumber job = 0;
  std::vector<HeldDevices> where{};
  RunStage stage = RunStage::Ordered;
  std::optional<Claim> claim{};          // of Placed and Running
  std::int64_t placed_at = 0;            // when the order was sent, or found to have been
  bool is_hold_sent = false;             // and done: it cannot begin any more unless it has
  std::int64_t started = 0;              // by Slurm's clock
  std::optional<std::int64_t> end_at{};  // it was warned, and is ended then
  bool is_end_sent = false;
  bool is_suspended = false;  // by us
  std::int32_t refusals = 0;  // to make it wait again after it has ended by itself
  std::string why{};          // the last word of Slurm that was no success
};

struct TrackRules {
  std::int64_t patience = 90;  // seconds until a placed job that Slurm does not start is withdrawn
  /// To its batch script, grace seconds before it is ended; 0: Slurm's own SIGTERM is enough.
  int warn_signal = 0;
};

enum class RunVerb : std::uint8_t { None, Place, Hold, Requeue, Cancel, Signal, Suspend, Resume };

struct TrackStep {
  RunVerb verb = RunVerb::None;
  bool has_begun = false;            // it was seen to run for the first time
  std::optional<Finding> finding{};  // it is over with this attempt
};

/// `job`: as it was just read; null: nothing was said of it. `is_gone`: nothing ever will be.
[[nodiscard]] TrackStep next_step(RunTrack& track, const RunWish& wish, const slurm::Job* job,
                                  bool is_gone, std::int64_t now, const TrackRules& rules);
/// What Slurm said to it.
void note_sent(RunTrack& track, RunVerb verb, const slurm::Linked<void>& answer, std::int64_t now,
               const RunWish& wish);

/// Of a job that is over in Slurm.
[[nodiscard]] Outcome outcome_of(const slurm::Job& job);

}  // namespace berth
