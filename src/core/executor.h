// The world below the engine: who makes events happen and carries actions out. The simulated
// executor jumps to the next event, a live one sleeps or is woken; the engine cannot tell. An
// executor that cannot start a job says so later, with an event.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "core/action.h"
#include "core/capabilities.h"
#include "core/entitlement.h"
#include "core/job_table.h"
#include "model/trace.h"
#include "perf/training.h"

namespace berth {

/// In the order in which events of one instant are absorbed: what ended frees devices before
/// newcomers are seen, and a policy's timers come last, inside its decide().
enum class EventKind : std::uint8_t {
  Finished,
  Lost,       // its attempt is gone, the job waits again: for another try
  Withdrawn,  // it leaves as if it had never come; it may come again, in another slot
  NodeDown,
  NodeUp,
  SwitchedOff,  // a node is off that the plan has not switched off, or will not boot
  Boots,        // a node comes up that the plan has not switched on
  Booted,
  Shares,  // people are entitled to something else: see entitlements()
  Arrival,
  Cancel,
  NextPhase
};

/// Others are about a node, or about everybody.
[[nodiscard]] constexpr bool is_of_a_job(EventKind kind) noexcept {
  return kind != EventKind::NodeDown && kind != EventKind::NodeUp &&
         kind != EventKind::SwitchedOff && kind != EventKind::Boots && kind != EventKind::Booted &&
         kind != EventKind::Shares;
}

struct Event {
  EventKind kind{};
  JobState outcome = JobState::Completed;  // of Finished
  JobId job;
  NodeId node;
  Phase phase = Phase::Training;               // of NextPhase: the one that begins
  FailureKind failure = FailureKind::Unknown;  // of Finished, if it failed
  bool asks_policy = false;  // of Finished, if it failed: is it tried again? See set_retry().
};

/// When a start takes effect: devices held from, progress made from, at which rate.
struct StartReceipt {
  Time held_from;
  Time work_from;
  Rate rate = Rate::one();
  Phase phase = Phase::Training;
};

/// A running job goes faster or slower from now on: its neighbourhood or its terms changed. Or what
/// is known of its rate rests on something else.
struct RateChange {
  JobId job;
  Rate rate;
  /// What it has done by now, if that is not what it was thought to have done: it says so itself.
  std::optional<Duration> work = {};
  /// In an open run; anything but `Measured` also says that its conditions are others from now on.
  RateBasis basis = RateBasis::Exact;
  /// Its start took effect at this moment, and not when its receipt said: whoever was on its
  /// devices has left only then. Not before the receipt's moment unless that is still to come.
  std::optional<Time> begun = {};
};

/// What a job has behind it that comes to an engine which does not know it: it was there before a
/// restart.
struct JobPast {
  Time first_start = kNever;
  Duration held{};
  Duration service{};
  std::uint32_t preemptions = 0;
  std::uint32_t failures = 0;
  /// What was learnt of jobs like it, one of the believed profiles; nothing: by its model's name.
  std::optional<ProfileId> profile = {};
  /// Where it still runs. A policy that starts it is given these devices if it leaves the choice to
  /// the placement.
  std::span<const Slice> slices;
};

class Executor {
 public:
  virtual ~Executor() = default;
  /// What it can do, as long as it lives. A plan contains nothing else.
  [[nodiscard]] virtual Capabilities capabilities() const noexcept { return Capabilities::all(); }
  /// Lets time pass until the next event or `wakeup` (kNever: no wish), whichever comes first, and
  /// says what time it is then. Nothing: no event will ever come.
  [[nodiscard]] virtual std::optional<Time> advance(Time wakeup) = 0;
  /// Will anything ever happen by itself, without a wake-up or another action? When in doubt, yes.
  [[nodiscard]] virtual bool expects_events() const noexcept { return true; }
  /// Appends all events due at `now`, in the order of EventKind, inside a kind by job or node.
  virtual void collect(Time now, std::vector<Event>& due) = 0;
  /// Something has changed since the last collect() that is no event, but may be news to a policy
  /// or a tuner: a job is known better. Otherwise nobody decides at an instant without events that
  /// is before the wake-up asked for, but for the first instant of a run.
  [[nodiscard]] virtual bool calls_for_pass() const { return false; }
  /// Appends what else has been set since last asked that decisions rest on, as texts of its own
  /// (what was learnt of jobs): repeat() sets it again for an engine that is told the same.
  virtual void take_notes(std::vector<std::string>&) {}
  virtual void repeat(std::string_view) {}
  [[nodiscard]] virtual StartReceipt start(Time now, const Action& action,
                                           const JobTable& jobs) = 0;
  /// Preempt, kill, cancel or a lost node; answers until when the devices stay held (saving a
  /// checkpoint).
  [[nodiscard]] virtual Time stop(Time now, const Action& action, const JobTable& jobs) = 0;
  /// A job that waits is ended by the scheduler.
  virtual void discard(Time, const Action&, const JobTable&) {}
  /// The answer to Event::asks_policy, before anything else is decided: the job waits for another
  /// try, or it is over. Nothing: the engine does not take it for running, so that the executor
  /// says itself what became of it.
  virtual void set_retry(JobId, std::optional<bool> /*again*/) {}
  /// The terms of a running job changed.
  virtual void adjust(Time, const Action&, const JobTable&) {}
  /// Of a job that arrives in an open run.
  [[nodiscard]] virtual JobPast past(JobId) const { return {}; }
  /// Asked at an event that says that they have changed (EventKind::Shares), and only then: who
  /// wants them known from the beginning sends one there.
  [[nodiscard]] virtual Entitlements entitlements() { return {}; }
  /// A node is switched on (an event says when it has booted) or off.
  virtual void power(Time, const Action&) {}
  /// What the training code of a job has said so far.
  [[nodiscard]] virtual std::optional<TrainingReport> report(Time, JobId, const JobTable&) const {
    return std::nullopt;
  }
  /// Appends the loss after each whole epoch done, from `first` on.
  virtual void losses(Time, JobId, const JobTable&, std::int64_t /*first*/,
                      std::vector<double>&) const {}
  /// Before a policy decides, in an open run: what jobs themselves have made known since.
  virtual void news(Time, const JobTable&, std::vector<RateChange>&) {}
  /// After everything of one instant: jobs whose rate differs from what the job table says.
  virtual void rates(Time, const JobTable&, std::vector<RateChange>&) {}
};

}  // namespace berth
