// Why a job waits: every gate that is shut, with numbers, who can open it, whether it is the only
// one, and what would let the job start. Gates are evaluated on the state after the last pass; what
// they claim is confirmed by the policy itself, in forked copies of the scheduler in which the
// gates are lifted. A job that does not compete yet is asked about as if it did.
#pragma once

#include <optional>
#include <vector>

#include "core/engine.h"
#include "model/trace.h"
#include "why/held_start.h"
#include "why/running_scheduler.h"
#include "why/shut_gate.h"
#include "wire/views.h"
#include "wire/why.h"

namespace berth {

/// A job that somebody asks about, and what was looked up before the copy was made: there, locks of
/// other threads may be held for ever.
struct AskedJob {
  const JobView& job;
  std::vector<ShutGate> shut{};           // before the competition
  bool may_see_all = false;               // names of other users' jobs may be told
  bool is_frozen = false;                 // suspended by a person
  std::optional<HeldStart> held_start{};  // it has devices, as soon as somebody else is stopped
};

/// Changes what it is given: only for a copy of the scheduler (forked.h). Takes no lock.
class Explainer {
 public:
  struct Parts {
    Engine& engine;
    Trace& slots;
    RunningScheduler& scheduler;
  };
  explicit Explainer(Parts parts) : parts_(parts) {}
  [[nodiscard]] Why explain(const AskedJob& asked);

 private:
  void add_gates(const AskedJob& asked, Why& why) const;
  void add_competition(const AskedJob& asked, Why& why);

  Parts parts_;
};

}  // namespace berth
