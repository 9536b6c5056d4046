// One try to run a job, as everybody speaks of it: what it holds and how it ended.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

/// How an attempt ended, as what it was.
enum class Outcome : std::uint8_t {
  Completed,    // exit code 0
  Failed,       // any other exit, or a signal of its own
  Cancelled,    // by its user or an operator
  TimedOut,     // over its limit
  Preempted,    // by the scheduler, to run again
  NodeFailed,   // its node or the power went away
  Requeued,     // asked to be run again: by its exit code or by name
  NotStarted,   // never began: the claim was taken or the program could not be started
  Rejected,     // no state of the cluster could hold it (no attempt at all)
  OutOfMemory,  // it wanted more memory than it may have, and was killed
};
/// Kept in the journal, so they never change.
inline constexpr std::array<std::pair<Outcome, std::string_view>, 10> kOutcomeNames{{
    {Outcome::Completed, "completed"},
    {Outcome::Failed, "failed"},
    {Outcome::Cancelled, "cancelled"},
    {Outcome::TimedOut, "timed-out"},
    {Outcome::Preempted, "preempted"},
    {Outcome::NodeFailed, "node-failed"},
    {Outcome::Requeued, "requeued"},
    {Outcome::NotStarted, "not-started"},
    {Outcome::Rejected, "rejected"},
    {Outcome::OutOfMemory, "out-of-memory"},
}};
[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;
[[nodiscard]] std::optional<Outcome> outcome_from(std::string_view text) noexcept;

/// Devices of one node, by index there.
struct HeldDevices {
  std::string node;
  std::vector<std::int32_t> devices;
  std::vector<std::int32_t> cores;  // it is bound to; empty: any
  friend bool operator==(const HeldDevices&, const HeldDevices&) = default;
};

}  // namespace berth
