// What a scheduler can do to a job or node: a closed set. A pass ends in a list of actions, stops
// before starts and then by JobId; an observer hears of each before the executor carries it out.
// The reason says why, for the action log and for people who ask.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/id.h"
#include "base/time.h"
#include "core/allocation.h"
#include "perf/terms.h"

namespace berth {

enum class JobState : std::uint8_t;

enum class ActionKind : std::uint8_t {
  Preempt,      // checkpoint and give the devices back
  Migrate,      // checkpoint and go on elsewhere
  Start,        // first start
  Resume,       // start again after a preemption or a lost node
  Kill,         // ended by the scheduler (over its limit)
  Reject,       // can never run here
  Suspend,      // keep its state on the host, give the devices back for a while
  Share,        // start or resume on devices that others are on
  Resize,       // go on with more or fewer devices
  SetSubBatch,  // gradient accumulation: another number of sub-batches per iteration
  SetCores,     // another number of CPU cores per GPU
  SetShare,     // another share of the kernels or of the device memory, or another way of sharing
  SetMemory,    // another amount of host memory per GPU
  SetBatch,     // another batch per GPU
  PowerOn,      // of a node: it boots and then takes jobs
  PowerOff,     // of an empty node
};

/// Devices are held from this action on that were not held before.
[[nodiscard]] constexpr bool begins_stretch(ActionKind kind) noexcept {
  return kind == ActionKind::Start || kind == ActionKind::Resume || kind == ActionKind::Share;
}
/// The job goes on, on other devices.
[[nodiscard]] constexpr bool changes_devices(ActionKind kind) noexcept {
  return kind == ActionKind::Migrate || kind == ActionKind::Resize;
}
/// The job waits from this action on.
[[nodiscard]] constexpr bool ends_stretch(ActionKind kind) noexcept {
  return kind == ActionKind::Preempt || kind == ActionKind::Suspend;
}
/// The devices stay; only how the job runs on them changes.
[[nodiscard]] constexpr bool sets_terms(ActionKind kind) noexcept {
  return kind >= ActionKind::SetSubBatch && kind <= ActionKind::SetBatch;
}

enum class Reason : std::uint8_t {
  None,
  Order,         // its turn
  Backfill,      // fits before a reservation without delaying it
  Reservation,   // its reserved time has come
  Priority,      // makes room for a job that comes before it
  Guarantee,     // makes room for a queue or tenant within its guarantee
  Demotion,      // fell to a lower queue
  NodeLost,      // its node went down
  TimeLimit,     // outlived its limit
  Quota,         // larger than its tenant may ever use
  NeverFits,     // larger than any legal placement
  TimeSlice,     // its slice of time begins or ends
  Packing,       // beside another job on the same device, or no longer
  Locality,      // devices closer together
  Interference,  // away from a neighbour that slows it down
  Defragment,    // makes whole servers free
  Growth,        // takes idle devices, or gives them back
  Eviction,      // hurt the job it lives beside
  Lease,         // its lease ended and was not renewed
  Balance,       // cores, memory or load shared out anew
  Profiling,     // a short run to learn how it behaves
  Deadline,      // its deadline asks for it, or cannot be kept
  Price,         // what it is worth against what its devices cost
  Fairness,      // nobody else is further behind
  Round,         // its share of this round
  Power,         // demand for nodes rises or falls
  EarlyStop,     // it learns no better than its siblings
  Retry,         // its attempt failed and it is tried again
};

inline constexpr JobId kNoJob{0xffffffffU};

struct Action {
  ActionKind kind{};
  Reason reason = Reason::None;
  JobId job;  // kNoJob if it is about a node: then the slice says which
  PoolId pool;
  std::int32_t gpus = 0;
  std::span<const Slice>
      slices;  // of the new placement (start) or the old one (stop); valid until acted
  std::span<const Slice> left{};  // Migrate, Resize: the devices it leaves
  Terms terms{};                  // how it runs from now on
  Duration pause{};  // what this move costs by its mechanism: devices held, no progress
};

[[nodiscard]] std::string_view to_string(ActionKind kind) noexcept;
[[nodiscard]] std::string_view to_string(Reason reason) noexcept;

/// Hears what a run does, in the order in which it happens, and has no say in it. A recorder keeps
/// it; a live executor acts when an instant is done. What must be on record before it is acted on
/// is written by whoever acts.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// An action is decided and about to be carried out.
  virtual void append(Time, const Action&) {}
  /// A job is over by itself or by its user; whatever it held has come back. Kill and Reject are
  /// actions.
  virtual void finished(Time, JobId, JobState) {}
  /// The state after all actions of one instant: for timelines.
  virtual void instant_done(Time) {}
};

}  // namespace berth
