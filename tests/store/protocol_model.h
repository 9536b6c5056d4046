// T0: the protocol of scheduler, shims and journal as a small machine of states, explored
// completely: two jobs, one device, one preemption, at most two crashes, every interleaving and
// every surviving prefix of the journal's tail. Mutants leave one rule out; the explorer must find
// each.
//
// A job is none, submitted (written, not acknowledged), waiting, intent, running, killing, ending
// (its end is written, nobody was told) or done. A shim is forked, then it claims its attempt and
// runs, then it leaves an exit record; or it was signalled and leaves a record of that. Files are
// durable. The journal is a durable list and an unsynced tail. Recovery is one step.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace berth::test {

enum class Mutant : std::uint8_t {
  None,
  AckBeforeSync,      // M1
  SpawnThenLog,       // M2
  NoTombstone,        // M3
  FreeAtSignal,       // M4: devices are free when the signal is sent
  RequeueNotAdopt,    // M5
  SpawnBeforeSync,    // M6
  EndAckBeforeSync,   // M7
  NumberFromJournal,  // M8: attempt = the journal's last + 1
};

struct ModelOptions {
  Mutant mutant = Mutant::None;
  bool has_controller_power_loss = true;  // the controller alone; jobs live on
  int crashes = 2;
  int preemptions = 1;
};

/// Of I1 to I4: the shortest way to break it; empty if there is none.
struct Exploration {
  std::size_t states = 0;
  std::size_t crash_transitions = 0;
  std::size_t stuck = 0;  // states from which the jobs cannot all be done any more
  std::array<std::string, 4> broken;
  std::string stuck_trace;  // the shortest way into a stuck state
};

[[nodiscard]] Exploration explore(const ModelOptions& options);

}  // namespace berth::test
