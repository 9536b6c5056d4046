// The knobs of `agents`, with the defaults of its design.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "policies/common/migration.h"

namespace berth::agents {

/// What agents bid by. Fairness: rho, finish time against the ideal one. Jct: seconds left.
/// Throughput: one over the normalised speed. Deadline: seconds left against seconds to the
/// deadline.
enum class Value : std::uint8_t { Fairness, Jct, Throughput, Deadline };

/// Who gets first what nobody bought: whom the places that are left hurt least, or who is worst
/// off.
enum class Leftover : std::uint8_t { Locality, WorstOff };

/// Charged: a winner holds its lease only for the part of it that is fair to those it beat.
enum class Payment : std::uint8_t { Free, Charged };

struct Options {
  Value value = Value::Fairness;
  Leftover leftover = Leftover::Locality;
  Payment payment = Payment::Free;
  double hidden = 0.8;                           // f: part of the agents an offer is hidden from
  Duration interval = std::chrono::seconds{60};  // tau
  Duration lease = std::chrono::minutes{20};
  double switching_credit = 0.05;
  std::int64_t pod_devices = 2000;
  Duration exchange = std::chrono::seconds{10};  // between arbiters
  bool defragment = true;
  Duration migration_interval = std::chrono::minutes{5};  // zero: jobs stay where they are
  Duration migration_cost = std::chrono::seconds{60};
  MigrationRule migration;
};

}  // namespace berth::agents
