// Attempts on their way out. Policies think in simulated worlds, where stopping a job costs what
// they believe. Here work is lost, so that two rules hold whatever the policy: an attempt that is
// preempted goes on until it has run `min_run`, and a job that cannot save its work makes way for
// the same rival only once. Owns who was preempted and is not stopped yet, and whom training code
// was asked to save and leave. Stops nobody itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/attempt_table.h"
#include "daemon/pending_starts.h"
#include "why/held_start.h"

namespace berth {

class Departures {
 public:
  struct Parts {
    const AttemptTable& attempts;
    const PendingStarts& starts;
    const JobLookup& job;
    const SupervisorRules& rules;
  };
  explicit Departures(Parts parts) : parts_(parts) {}

  // --- preempted, not stopped yet

  void add(JobNumber job, std::string why) { leaving_.emplace(job, std::move(why)); }
  [[nodiscard]] bool contains(JobNumber job) const { return leaving_.contains(job); }
  /// It stays, or was stopped.
  void erase(JobNumber job) { leaving_.erase(job); }
  void clear() { leaving_.clear(); }
  [[nodiscard]] const std::map<JobNumber, std::string>& all() const noexcept { return leaving_; }
  /// When one that is leaving may be stopped; kNever: it goes on to its end.
  [[nodiscard]] Time due(const Attempt& attempt) const;

  // --- asked to save and leave

  /// If it is still there then, it is warned by signal.
  void warn_at(JobNumber job, Time when) { asked_to_leave_[job] = when; }
  void stop_warning(JobNumber job) { asked_to_leave_.erase(job); }
  /// Those who should have left by now; each is named once.
  [[nodiscard]] std::vector<JobNumber> take_overdue(Time now);

  /// It is gone.
  void forget(JobNumber job);

  /// When the next one is due to be stopped or warned; kNever: nobody is.
  [[nodiscard]] Time next_due() const;
  /// Until when a start of this job waits for others to have run long enough.
  [[nodiscard]] std::optional<Time> start_waits_until(JobNumber job) const;
  /// Starts that wait for somebody who may go on for a while.
  [[nodiscard]] std::vector<HeldStart> held_starts() const;

 private:
  [[nodiscard]] bool can_save(const LedgerJob& job) const;
  [[nodiscard]] HeldStart held_behind(JobNumber job, const Attempt& attempt) const;
  [[nodiscard]] std::string min_run_text() const;

  Parts parts_;
  std::map<JobNumber, std::string> leaving_;  // why
  std::map<JobNumber, Time> asked_to_leave_;  // the warning follows then
};

}  // namespace berth
