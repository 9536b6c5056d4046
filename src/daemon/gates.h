// Who may compete for devices at all. A job is kept from the engine while it is held, its time has
// not come, jobs it waits for are not over, or too many of its array or of its user's and group's
// are in already. Each of these is a gate of its own with its own state; this class asks them in
// order, knows who is in, and remembers whom to ask about again. Knows nothing of devices; every
// gate says in numbers why it is shut.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/array_gate.h"
#include "daemon/dependency_gate.h"
#include "daemon/hold_gate.h"
#include "daemon/quota_gate.h"
#include "daemon/start_time_gate.h"
#include "store/ledger.h"
#include "why/shut_gate.h"

namespace berth {

class Gates {
 public:
  explicit Gates(DependencyGate::OutcomeOf outcome_of, DependencyGate::PastOf past_of = {})
      : dependencies_(std::move(outcome_of), std::move(past_of)) {}

  // --- jobs that come, change and go

  /// A job that is not over. `wall` is the Unix time in microseconds at `now`: begin times are told
  /// by people's clock.
  void add(const LedgerJob& job, Time now, std::int64_t wall,
           DependencyGate::Origin origin = DependencyGate::Origin::New);
  /// A job that an engine from before has let in already: it is not asked again.
  void let_in(JobNumber job);
  /// It was changed by its user or an operator.
  void change(const LedgerJob& job, Time now, std::int64_t wall);
  void started(JobNumber job, Time now);
  /// It is over for good, or its attempt is (`is_final` false): then it is in line again, not
  /// before `not_before`.
  void ended(JobNumber job, Outcome outcome, bool is_final, Time not_before = {});

  // --- what people and the engine want

  /// A job that runs goes on; it is held when it would be in line again.
  void hold(JobNumber job, bool runs);
  void release(JobNumber job);
  /// The same for a job that a person has suspended.
  void freeze(JobNumber job, bool runs);
  void thaw(JobNumber job);
  /// It was let in, and the cluster turns out to be too small for it: it waits for another engine,
  /// which may know a larger one, or for a change. `runs` as above.
  void refuse(JobNumber job, std::string why, bool runs);

  // --- shares ("user/alice", "group/ml"): see QuotaGate

  void set_limits(const std::string& who, const ShareLimits& limits) {
    quotas_.set_limits(who, limits);
  }
  void set_half_life(double seconds) { quotas_.set_half_life(seconds); }
  void set_use(const std::string& who, double gpu_seconds, Time now = {}) {
    quotas_.set_use(who, gpu_seconds, now);
  }
  /// An attempt of this job has ended: its user and its group have used this.
  void add_use(JobNumber job, double gpu_seconds, Time now);
  /// Where a budget has been spent since last asked, jobs in line leave it again; those that hold
  /// devices go on.
  void shut_spent(const std::function<bool(JobNumber)>& holds);

  // --- what has come of it

  /// Jobs whose gates are all open now, in order of number; each is told once, and counts against
  /// limits until it is over, held or in line again.
  void take_ready(Time now, std::vector<JobNumber>& ready);
  /// Jobs that have been shut out again although they were told: they leave the engine.
  void take_withdrawn(std::vector<JobNumber>& withdrawn);
  void take_unsatisfiable(std::vector<UnsatisfiableJob>& jobs) {
    dependencies_.take_unsatisfiable(jobs);
  }
  /// Jobs that were told or turned away since last asked: what people are shown has changed.
  void take_looked_at(std::vector<JobNumber>& jobs);
  /// Something has changed since the last look: somebody may be let in, withdrawn or ended.
  [[nodiscard]] bool has_news() const noexcept {
    return !recheck_.empty() || quotas_.has_room_to_offer() || !withdrawn_.empty() ||
           dependencies_.has_unsatisfiable();
  }
  [[nodiscard]] std::optional<Time> next_opening() const;

  // --- questions

  [[nodiscard]] bool knows(JobNumber job) const { return rows_.contains(job); }
  [[nodiscard]] bool is_in(JobNumber job) const;
  /// Held or suspended: in line again it would be shut out.
  [[nodiscard]] bool is_kept(JobNumber job) const { return holds_.is_kept(job); }
  [[nodiscard]] bool is_frozen(JobNumber job) const { return holds_.is_frozen(job); }
  [[nodiscard]] bool is_kept_unmet(JobNumber job) const { return dependencies_.is_kept_unmet(job); }
  /// How a job ended that is over.
  [[nodiscard]] std::optional<Outcome> outcome_of(JobNumber job) const {
    return dependencies_.outcome_of(job);
  }
  [[nodiscard]] std::vector<ShutGate> shut(JobNumber job, Time now) const;
  /// Limits that would keep out a job of this request.
  [[nodiscard]] std::vector<ShutGate> shut_by_limits(const JobSpec& spec) const;
  /// The first of its user's and its group's limits that leaves no room for it.
  [[nodiscard]] std::optional<FullLimit> full_limit(JobNumber job) const;

 private:
  struct Row {
    std::shared_ptr<const JobSpec> spec;
    JobNumber array = 0;
    bool is_in = false;
    [[nodiscard]] ArrayMember member() const { return array_member(array, *spec); }
  };
  [[nodiscard]] bool may_enter(JobNumber job, const Row& row, Time now) const;
  void try_to_enter(JobNumber job, Time now, std::vector<JobNumber>& ready);
  void enter(JobNumber job, Row& row);
  void leave(JobNumber job, Row& row);
  void withdraw_unless(bool runs, JobNumber job, Row& row);

  HoldGate holds_;
  StartTimeGate times_;
  DependencyGate dependencies_;
  ArrayGate arrays_;
  QuotaGate quotas_;
  std::map<JobNumber, Row> rows_;
  std::set<JobNumber> recheck_;  // one of their gates may have opened
  std::vector<JobNumber> looked_at_;
  std::vector<JobNumber> withdrawn_;
};

}  // namespace berth
