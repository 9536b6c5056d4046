// What a scheduler can do to a job or node: a closed set. A pass ends in a list of actions, stops
// before starts and then by JobId; the journal writes each before the executor carries it out. The
// reason says why, for the action log and for people who ask.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/id.h"
#include "base/time.h"
#include "core/allocation.h"

namespace berth {

enum class JobState : std::uint8_t;

enum class ActionKind : std::uint8_t {
  Preempt,  // checkpoint and give the devices back
  Migrate,  // checkpoint and go on elsewhere
  Start,    // first start
  Resume,   // start again after a preemption or a lost node
  Kill,     // ended by the scheduler (over its limit)
  Reject,   // can never run here
};

enum class Reason : std::uint8_t {
  None,
  Order,        // its turn
  Backfill,     // fits before a reservation without delaying it
  Reservation,  // its reserved time has come
  Priority,     // makes room for a job that comes before it
  Guarantee,    // makes room for a queue or tenant within its guarantee
  Demotion,     // fell to a lower queue
  NodeLost,     // its node went down
  TimeLimit,    // outlived its limit
  Quota,        // larger than its tenant may ever use
  NeverFits,    // larger than any legal placement
};

struct Action {
  ActionKind kind{};
  Reason reason = Reason::None;
  JobId job;
  PoolId pool;
  std::int32_t gpus = 0;
  std::span<const Slice>
      slices;  // of the new placement (start) or the old one (stop); valid until acted
  std::span<const Slice> left{};  // Migrate: the devices it leaves
};

[[nodiscard]] std::string_view to_string(ActionKind kind) noexcept;
[[nodiscard]] std::string_view to_string(Reason reason) noexcept;

/// Where intentions are written before they are acted on. In a simulation it is a recorder.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void append(Time now, const Action& action) = 0;
  /// A job is over by itself or by its user; whatever it held has come back. Kill and Reject are
  /// actions.
  virtual void finished(Time now, JobId job, JobState outcome) {
    static_cast<void>(now);
    static_cast<void>(job);
    static_cast<void>(outcome);
  }
  /// The state after all actions of one instant: for timelines.
  virtual void instant_done(Time now) { static_cast<void>(now); }
};

}  // namespace berth
