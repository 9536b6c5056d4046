// What of Chronus can be set from outside.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "policies/chronus/lease_plan.h"

namespace berth::chronus {

enum class BestEffortKey : std::uint8_t { Remaining, Attained };
/// What becomes of a strict deadline that cannot be promised, or not be kept after all.
enum class Unmet : std::uint8_t { Refused, BestEffort };
enum class Late : std::uint8_t { BestEffort, Killed };
/// GPUs that rounding a lease up to a block leaves idle.
enum class Padding : std::uint8_t { Lent, KeptFree };
/// Whether leases of the coming term that can come later make way for short best-effort jobs.
enum class Program : std::uint8_t { PromisesAlone, WithBestEffort };

struct Options {
  Duration lease = std::chrono::minutes{20};
  Duration restart = std::chrono::seconds{30};
  double slack = 1.05;                     // on the believed work left
  Duration grace = std::chrono::hours{1};  // lateness at which a soft job has lost its value
  Unmet unmet = Unmet::Refused;
  Late late = Late::BestEffort;
  BestEffortKey key = BestEffortKey::Remaining;
  std::int64_t starve_leases = 36;  // waits this many: goes first
  Program program = Program::PromisesAlone;
  Padding padding = Padding::Lent;
  std::int32_t search_steps = 1000;  // of the local search
  double move_cost = 0.025;          // speed that moving a job must gain there
  SearchEffort effort;
};

}  // namespace berth::chronus
