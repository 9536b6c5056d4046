// Random lives of a whole scheduler: one seed gives a cluster, a workload, a policy, which kinds of
// fault there are and when each strikes. Faults stop, what people have held is let go, and then
// every job has to end. The same seed gives the same records, to the byte.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/live_world.h"

namespace berth::test {

enum class FaultClass : std::uint8_t {
  Kill,        // of the scheduler
  Power,       // with all jobs
  Controller,  // power, jobs live on
  InRecovery,  // a crash soon after a crash
  Disk,        // errors on write and sync
  FullDisk,    // nothing new is taken
  Refusals,    // of launches
  LateClaims,  // shims that take long
  ShimDeaths,  // before the claim, after it, before the record
  LateEvents,  // told late and out of order
  TwiceTold,   // told twice
  Stubborn,    // jobs that ignore warnings
  Flaky,       // jobs that fail first
  Cancels,     // and everything else that people do, at any moment
  Holds,
  Requeues,
  Suspends,
  Policies,
  Nodes,
  Changes,
  Shares,
  ClockJumps,  // of the wall clock
  Repeats,     // a submit is sent again with its key, perhaps when the job is long over
  Narrow,      // one more of what people do, while a job is begun; the disk fails in recovery
  Absurd,      // people ask for anything, of jobs in any state
  LateWakes,   // the scheduler wakes late by seconds, now and then by hours; without, by less
  Reports,     // of jobs: late, never or nonsense
  SlowPasses,  // processes go on while the scheduler works
};
inline constexpr std::size_t kFaultClasses = 28;
[[nodiscard]] std::string_view to_string(FaultClass fault) noexcept;

enum class Moment : std::uint8_t { Any, Narrow };
/// Something that goes wrong, or that somebody does.
struct Strike {
  double at = 0;  // seconds
  FaultClass what{};
  std::uint64_t number = 0;  // decides the rest
  Moment moment = Moment::Any;
};

struct LifeSettings {
  std::uint64_t seed = 1;
  std::string cluster;
  std::string policy;
  double days = 1;
  std::vector<std::pair<double, JobSpec>> jobs;  // when, what
  std::bitset<kFaultClasses> classes;
  std::vector<Strike> strikes;  // in order of time
  SimHost::Options host;
  std::size_t spare_slots = 64;
  std::int64_t min_run = 0;
  Oversleeping oversleeping;
  [[nodiscard]] bool has(FaultClass fault) const {
    return classes.test(static_cast<std::size_t>(fault));
  }
};
/// `policy` of the registry; without one the seed decides.
[[nodiscard]] LifeSettings draw_life(std::uint64_t seed, std::optional<std::string> policy = {});
[[nodiscard]] std::string to_text(const LifeSettings& settings);

struct LifeReport {
  std::vector<std::string> violations;
  std::uint64_t digest = 0, records = 0;
  double seconds = 0;  // of the world
  int lives = 0;
  std::uint64_t jobs = 0;
  LiveWorld::Strikes struck;
  std::map<std::string, std::uint64_t> deaths_at;
  std::array<std::uint64_t, 4> found{};  // by recovery and after a lost shim
  std::deque<std::string> log;
};
enum class KeepLog : bool { No, Yes };
[[nodiscard]] LifeReport live_through(const LifeSettings& settings, KeepLog keep = KeepLog::No);

/// The same life without one class of fault.
[[nodiscard]] LifeSettings without(LifeSettings settings, FaultClass what);
/// The smallest one found within 200 lives that still goes wrong: without whole classes of fault,
/// then with fewer strikes and fewer jobs, by halving, then in less time.
[[nodiscard]] LifeSettings shrunk(LifeSettings settings);

// --- parts (life_actions.cpp)

/// A policy of the registry, with settings that spare the processor where the default would not.
[[nodiscard]] PolicyChoice affordable(const std::string& policy);

/// What a strike of people or of the surroundings does.
void strike(LiveWorld& world, LiveService& service, const Strike& strike);
/// Faults are over: nodes come back, what is held or suspended may go on.
void heal(LiveService& service);

}  // namespace berth::test
