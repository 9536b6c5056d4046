// Why a job waits: every gate that is shut, with numbers, who can open it, whether it is the only
// one, and what would let the job start. Gates are evaluated on the state after the last pass; what
// they claim is confirmed by the policy itself, in forked copies of the scheduler in which the
// gates are lifted. A job that does not compete yet is asked about as if it did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/gates.h"
#include "daemon/live_executor.h"
#include "daemon/status_board.h"
#include "wire/why.h"

namespace berth {

[[nodiscard]] std::string to_json(const Why& why);
/// Of an answer of our own: one without a job is none.
[[nodiscard]] Result<Why> why_from_json(std::string_view text);

/// Changes what it is given: only for a copy of the scheduler (forked.h). Asks no lock.
class Explainer {
 public:
  struct Parts {
    Engine& engine;
    Trace& slots;
    LiveExecutor& executor;
    const Gates& gates;
    const LiveClock& clock;
  };
  struct Asked {
    const JobView& job;
    std::vector<ShutGate> shut;             // before the competition
    std::optional<LedgerJob> record;        // of a job that does not compete: how it would
    bool may_see_all = false;               // names of other users' jobs may be told
    std::optional<HeldStart> held_start{};  // it has devices, as soon as somebody else is stopped
  };
  explicit Explainer(Parts parts) : parts_(parts) {}
  [[nodiscard]] Why explain(const Asked& asked);

 private:
  struct Waiting;  // the job in its slot, what is free for it, what the dry runs said
  void add_gates(const Asked& asked, Why& why) const;
  void add_competition(const Asked& asked, Why& why);
  void add_sleeping(const Waiting& waiting, Why& why) const;
  void add_room(const Waiting& waiting, Why& why) const;
  void add_order(const Waiting& waiting, Why& why) const;
  void add_reservation(const Waiting& waiting, std::int64_t limit, Why& why) const;
  void add_policy(const Waiting& waiting, Why& why) const;
  void add_changes(const Waiting& waiting, Why& why) const;
  [[nodiscard]] bool would_start(const Waiting& waiting, const TraceJob& request) const;
  [[nodiscard]] std::optional<std::int64_t> longest_limit(const Waiting& waiting) const;
  [[nodiscard]] bool may_be_named(const Waiting& waiting, JobId job) const;
  /// Jobs by number, largest hold first, five at most and the rest as a sum; those of other users
  /// only as a sum unless they may be seen.
  [[nodiscard]] std::vector<std::string> named(const Waiting& waiting,
                                               const std::vector<JobId>& jobs) const;

  Parts parts_;
};

}  // namespace berth
