// Jobs that wait for other jobs: afterok and the like, and singletons, which wait for all earlier
// jobs of their user and name. Owns who waits for whom among the jobs that are not over, and which
// dependencies can never be met any more. A dependency on a job that is over is settled when the
// dependant comes, by asking for that job's outcome.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/ledger.h"
#include "why/shut_gate.h"

namespace berth {

/// A job that can never begin: what it waits for ended otherwise.
struct UnsatisfiableJob {
  JobNumber job = 0;
  std::string why;
};

class DependencyGate {
 public:
  /// How a job that is over ended; nothing if there never was such a job.
  using OutcomeOf = std::function<std::optional<Outcome>(JobNumber)>;
  /// The same job in full: of which array it was, when it began and ended. Absent: there are no
  /// arrays.
  using PastOf = std::function<std::optional<PastJob>(JobNumber)>;
  explicit DependencyGate(OutcomeOf outcome_of, PastOf past_of = {})
      : outcome_of_(std::move(outcome_of)), past_of_(std::move(past_of)) {}

  /// From another life of the scheduler, or just submitted.
  enum class Origin : std::uint8_t { Recovered, New };
  void add(const LedgerJob& job, Origin origin = Origin::New);
  /// Its request was changed. What it waited for before is forgotten; that it is unsatisfiable is
  /// not, since its end is under way.
  void change(const LedgerJob& job);
  // Adds to `recheck` whoever waits for less than before.
  void started(JobNumber job, Time now, std::set<JobNumber>& recheck);
  /// It is over for good.
  void ended(JobNumber job, Outcome outcome, std::set<JobNumber>& recheck);

  /// "after:12+5" opens by time, once job 12 has started.
  void take_due(Time now, std::set<JobNumber>& recheck);
  [[nodiscard]] std::optional<Time> next() const;

  [[nodiscard]] bool is_open(JobNumber job) const;
  /// What it waits for can never happen, and it was asked to stay all the same.
  [[nodiscard]] bool is_kept_unmet(JobNumber job) const;
  [[nodiscard]] std::optional<Outcome> outcome_of(JobNumber job) const { return outcome_of_(job); }
  [[nodiscard]] bool has_unsatisfiable() const noexcept { return !unsatisfiable_.empty(); }
  /// Appends jobs that have become unsatisfiable since last asked; each is named once.
  void take_unsatisfiable(std::vector<UnsatisfiableJob>& jobs);
  void explain(JobNumber job, std::vector<ShutGate>& shut) const;

 private:
  /// One dependency of a request. It means one job, or all of an array.
  struct Wait {
    Dependency asked{};
    std::vector<JobNumber> targets{};
    std::set<JobNumber> open{};  // those of them that have yet to start or to end
    bool has_failed = false;     // one of them did not complete
    std::string never{};         // why it can never be met
    [[nodiscard]] bool is_met() const noexcept { return open.empty() && never.empty(); }
    void settle(JobNumber target, Outcome outcome);
  };
  struct Row {
    std::shared_ptr<const JobSpec> spec;
    JobNumber array = 0;
    std::int32_t array_index = 0;
    Time submitted{};
    std::optional<Time> started{};
    std::vector<Wait> waits{};
    bool is_unsatisfiable = false;  // it is about to be ended, unless it is kept
    std::string never{};            // of one that is kept
    [[nodiscard]] bool depends() const;
    /// Why it can never begin; empty: it still can.
    [[nodiscard]] std::string hopeless() const;
    [[nodiscard]] std::vector<JobNumber> unmet() const;
  };
  using NameKey = std::pair<std::string, std::string>;  // user, job name

  void set_dependencies(JobNumber job, Row& row, Origin origin);
  void begin_wait(JobNumber job, Wait& wait);
  void settle_past(JobNumber job, Wait& wait, JobNumber target);
  [[nodiscard]] bool is_of_an_older_version(const Row& row) const;
  [[nodiscard]] std::vector<JobNumber> targets(const Dependency& dependency, const Row& row) const;
  void add_name(JobNumber job, const JobSpec& spec);
  void remove_singleton(const JobSpec& spec);
  void settle(JobNumber waiting, JobNumber target, Outcome outcome, std::set<JobNumber>& recheck);
  enum class GivenUp : std::uint8_t { IsEnded, Stays };
  void give_up_on(JobNumber job, std::string why, GivenUp what);
  [[nodiscard]] bool is_singleton_blocked(JobNumber job, const Row& row) const;

  OutcomeOf outcome_of_;
  PastOf past_of_;
  std::map<JobNumber, Row> rows_;
  std::unordered_map<JobNumber, std::vector<JobNumber>> dependants_;  // by what they wait for
  std::map<NameKey, std::set<JobNumber>> by_name_;
  std::map<NameKey, std::size_t> singletons_;  // how many jobs of this name ask to be the only one
  std::vector<UnsatisfiableJob> unsatisfiable_;
  std::set<std::tuple<Time, JobNumber, JobNumber>> due_;  // when, who waits, for whom
};

}  // namespace berth
