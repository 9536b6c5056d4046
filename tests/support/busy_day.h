// A scripted day on two nodes of four devices: about forty jobs among which are a gang, arrays,
// dependencies, a preemption, retries, a limit, a cancel, a suspension, a requeue, a switch of
// policy, and a node that goes and comes back. How each job ends does not depend on when the
// scheduler dies, so that a disturbed day can be held against a calm one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/live_world.h"

namespace berth::test {

using Ends = std::map<std::string, LiveState>;  // by key and array index

[[nodiscard]] WorldOptions busy_options();
void write_busy_script(LiveWorld& world);
[[nodiscard]] Ends ends_of(const LiveWorld& world);

struct CalmDay {
  Ends ends;
  std::uint64_t points = 0;  // crash points that were passed
  std::vector<std::string> violations;
};
[[nodiscard]] CalmDay calm_day();

/// The day with a crash at this point of it: everything that was not as it should be.
[[nodiscard]] std::vector<std::string> disturbed_day(std::uint64_t point, CrashKind kind,
                                                     const CalmDay& calm);

/// A second crash at this point after the first one.
struct SecondCrash {
  std::vector<std::string> wrong;
  bool in_recovery = false;  // otherwise recovery passed fewer points, and it came later
};
struct CrashPair {
  std::uint64_t first = 1, second = 1;
  CrashKind first_kind{}, second_kind{};
};
[[nodiscard]] SecondCrash twice_disturbed_day(const CrashPair& pair, const CalmDay& calm);

}  // namespace berth::test
