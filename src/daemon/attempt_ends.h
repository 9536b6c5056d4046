// What the end of an attempt comes to: the verdict on it, whether the policy is asked first, and
// the record. Owns what verdicts depend on beyond the attempt itself: how often a job could not be
// launched or was lost in a row, and ends that wait for the policy's answer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "daemon/attempt.h"
#include "daemon/clock.h"
#include "exec/host.h"

namespace berth {

class AttemptEnds {
 public:
  struct Parts {
    const LiveClock& clock;
    const SupervisorRules& rules;
    /// What an attempt is charged that has ended at that time; absent: nobody counts.
    std::function<double(JobNumber, Time)> joules;
    /// Attempts whose programs were seen to run at that time or later; absent: nobody knows.
    std::function<std::set<AttemptId>(Time)> seen_to_run;
    /// The last moment that the life before this one has written down.
    std::optional<Time> last_known;
  };
  explicit AttemptEnds(Parts parts) : parts_(std::move(parts)) {}

  // --- verdicts

  [[nodiscard]] static Verdict of_exit(const LedgerJob& job, const Attempt& attempt,
                                       const ExitRecord& exit);
  /// Nobody saw it end, and it is not alive.
  [[nodiscard]] Verdict of_lost(const LedgerJob& job, const Attempt& attempt,
                                const Finding& finding);
  /// The host could not start it.
  [[nodiscard]] Verdict of_failed_launch(const Attempt& attempt, const std::string& why);
  /// Found after a restart. `oldest`: since when any attempt is on record as alive.
  struct FoundEnd {
    Verdict verdict;
    std::optional<Time> until{};  // it is charged until then; nothing: by its exit, or until now
  };
  [[nodiscard]] FoundEnd of_found(const LedgerJob& job, const Attempt& attempt,
                                  const Finding& finding, Time oldest);

  // --- ends that the policy is asked about

  /// What failed by itself, and what its node took with it, the policy may want repeated. A user
  /// who does not want a job to run again after a lost node has that.
  [[nodiscard]] std::optional<FailureKind> asks_policy(const LedgerJob* job, const Verdict& verdict,
                                                       const ExitRecord* exit, Ending ending) const;
  struct Asked {
    Verdict verdict;
    std::optional<ExitRecord> exit;
  };
  void ask(JobNumber job, Asked end) { asked_[job] = std::move(end); }
  [[nodiscard]] bool is_asked(JobNumber job) const { return asked_.contains(job); }
  [[nodiscard]] std::optional<JobNumber> first_asked() const;
  /// The end as it is by the answer; `again` is nothing: as its user has asked. Nothing if nobody
  /// was asked.
  [[nodiscard]] std::optional<Asked> take_answered(JobNumber job, std::optional<bool> again);

  // --- records

  /// Without an exit record it is charged `until` then; nothing: until now.
  [[nodiscard]] EndRecord record(const Attempt& attempt, const Verdict& verdict,
                                 const ExitRecord* exit, std::optional<Time> until) const;
  /// The program of this job runs: it can be launched.
  void launched(JobNumber job) { launch_failures_.erase(job); }
  void ended(JobNumber job, const Verdict& verdict);

 private:
  Parts parts_;
  std::map<JobNumber, Asked> asked_;
  std::map<JobNumber, std::int32_t> launch_failures_;
  std::map<JobNumber, std::int32_t> losses_;  // of attempts, in a row
  std::optional<std::set<AttemptId>> seen_to_run_;
};

}  // namespace berth
