// Who may compete for devices at all. A job is kept from the engine while it is held, its time has
// not come, jobs it waits for are not over, too many of its array or of its user's and group's are
// in already, or it failed a moment ago. Knows nothing of devices; every gate says in numbers why
// it is shut.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/ledger.h"
#include "wire/why.h"

namespace berth {

enum class GateKind : std::uint8_t {
  Hold,
  Suspension,
  Begin,
  Dependency,
  Array,
  Quota,
  RetryDelay,  // "pace" for programs
  Fit,         // the cluster, as it is described now, could never hold it
};
[[nodiscard]] std::string_view to_string(GateKind kind) noexcept;

/// The most it may take: an elastic job counts with its upper end.
[[nodiscard]] std::int32_t gpus_of_request(const JobSpec& spec);

struct ShutGate {
  GateKind kind{};
  std::string text;               // with numbers: "alice has 4 of 4 GPUs"
  WhyNumbers numbers{};           // the same for programs
  std::optional<Time> until{};    // it opens by itself
  std::vector<JobNumber> jobs{};  // those it waits for
  std::string change{};  // what an admin would change, for "berth share set": "ann --gpu-limit 4"
};

/// What a user or a group may have in use or in line at once; 0 = no limit.
struct ShareLimits {
  std::int32_t gpus = 0;
  std::int32_t jobs = 0;
  double gpu_seconds = 0;  // of decayed use
};

/// The limit that keeps a job out.
struct FullLimit {
  enum class Of : std::uint8_t { Gpus, Jobs, GpuTime } of{};
  bool is_groups = false;  // its group's rather than its user's
};

class Gates {
 public:
  /// How a job that is over ended; nothing if there never was such a job.
  using OutcomeOf = std::function<std::optional<Outcome>(JobNumber)>;
  explicit Gates(OutcomeOf outcome_of) : outcome_of_(std::move(outcome_of)) {}

  /// A job that is not over. `wall` is the Unix time in microseconds at `now`: begin times are told
  /// by people's clock.
  void add(const LedgerJob& job, Time now, std::int64_t wall);
  /// A job that an engine from before has let in already: it is not asked again.
  void let_in(JobNumber job);
  /// How a job ended that is over.
  [[nodiscard]] std::optional<Outcome> outcome_of(JobNumber job) const { return outcome_of_(job); }
  /// A job that runs goes on; it is held when it would be in line again.
  void hold(JobNumber job, bool runs);
  void release(JobNumber job);
  /// The same for a job that a person has suspended.
  void freeze(JobNumber job, bool runs);
  void thaw(JobNumber job);
  /// Held or suspended: in line again it would be shut out.
  [[nodiscard]] bool is_kept(JobNumber job) const;
  [[nodiscard]] bool is_frozen(JobNumber job) const;
  /// It was let in, and the cluster turns out to be too small for it: it waits for another engine,
  /// which may know a larger one, or for a change. `runs` as above.
  void refuse(JobNumber job, std::string why, bool runs);
  void started(JobNumber job);
  /// It is over for good, or its attempt is (`is_final` false): then it is in line again, not
  /// before `not_before`.
  void ended(JobNumber job, Outcome outcome, bool is_final, Time not_before = {});
  /// It was changed by its user or an operator.
  void change(const LedgerJob& job, Time now, std::int64_t wall);
  /// "user/alice", "group/ml".
  void set_limits(const std::string& who, const ShareLimits& limits);
  /// Seconds in which use counts half; 0 = it is never forgotten.
  void set_half_life(double seconds) { half_life_ = seconds; }
  /// Decayed use of attempts that have ended, as of now.
  void set_use(const std::string& who, double gpu_seconds, Time now = {});
  /// An attempt of this job has ended: its user and its group have used this.
  void add_use(JobNumber job, double gpu_seconds, Time now);
  /// Where a budget has been spent since last asked, jobs in line leave it again; those that hold
  /// devices go on.
  void shut_spent(const std::function<bool(JobNumber)>& holds);

  /// Jobs whose gates are all open now, in order of number; each is told once, and counts against
  /// limits until it is over, held or in line again.
  void take_ready(Time now, std::vector<JobNumber>& ready);
  /// Jobs that have been shut out again although they were told: they leave the engine.
  void take_withdrawn(std::vector<JobNumber>& withdrawn);
  /// Jobs that can never begin: what they wait for ended otherwise.
  struct Unsatisfiable {
    JobNumber job = 0;
    std::string why;
  };
  void take_unsatisfiable(std::vector<Unsatisfiable>& unsatisfiable);
  /// Jobs that were told or turned away since last asked: what people are shown has changed.
  void take_looked_at(std::vector<JobNumber>& jobs);
  /// Something has changed since the last look: somebody may be let in, withdrawn or ended.
  [[nodiscard]] bool has_news() const noexcept {
    return !changed_.empty() || !opened_.empty() || !withdrawn_.empty() || !unsatisfiable_.empty();
  }
  [[nodiscard]] std::optional<Time> next_opening() const;

  [[nodiscard]] std::vector<ShutGate> shut(JobNumber job, Time now) const;
  /// The first of its user's and its group's limits that leaves no room for it.
  [[nodiscard]] std::optional<FullLimit> full_limit(JobNumber job) const;
  [[nodiscard]] bool knows(JobNumber job) const { return rows_.contains(job); }
  [[nodiscard]] bool is_in(JobNumber job) const;
  struct InUse {
    std::int32_t gpus = 0, jobs = 0;
  };
  [[nodiscard]] InUse in_use(const std::string& who) const;

 private:
  struct Row {
    std::shared_ptr<const JobSpec> spec;
    JobNumber array = 0;
    bool is_held = false;
    bool is_frozen = false;
    bool is_in = false;
    bool has_started = false;
    Time not_before{};             // begin time or pause after a failure
    bool waits_for_begin = false;  // of the two
    std::vector<JobNumber> unmet;  // dependencies
    bool is_one_met = false;
    bool is_unsatisfiable = false;  // it is about to be ended
    std::string unfit{};            // why no state of the cluster could hold it
  };
  struct Share {
    ShareLimits limits;
    double used_seconds = 0;
    Time used_at{};  // as of then
    InUse in;
    std::set<JobNumber> waiting;  // kept out by this limit or another one
    [[nodiscard]] bool is_full() const noexcept {
      return (limits.gpus > 0 && in.gpus >= limits.gpus) ||
             (limits.jobs > 0 && in.jobs >= limits.jobs) ||
             (limits.gpu_seconds > 0 && used_seconds >= limits.gpu_seconds);
    }
  };
  using NameKey = std::pair<std::string, std::string>;  // user, job name

  [[nodiscard]] static std::vector<std::string> shares_of(const JobSpec& spec);
  void set_times(Row& row, Time now, std::int64_t wall);
  void set_dependencies(JobNumber job, Row& row);
  void meet(JobNumber waiting, JobNumber target);
  void give_up_on(JobNumber job, std::string why);
  [[nodiscard]] bool depends(const Row& row) const noexcept;
  [[nodiscard]] bool is_singleton_blocked(JobNumber job, const Row& row) const;
  [[nodiscard]] std::optional<FullLimit> full_limit(const Row& row) const;
  [[nodiscard]] bool has_quota(const Row& row) const { return !full_limit(row); }
  [[nodiscard]] bool has_array_room(const Row& row) const;
  [[nodiscard]] bool may_enter(JobNumber job, const Row& row, Time now) const;
  void try_to_enter(JobNumber job, Time now, std::vector<JobNumber>& ready);
  void enter(JobNumber job, Row& row);
  void keep_out(JobNumber job, Row& row, bool runs);
  void leave(JobNumber job, Row& row);
  void settle(Share& share, Time now) const;
  void settle_budgets(Time now);
  /// When its use will have fallen below the limit by itself.
  [[nodiscard]] std::optional<Time> budget_opens(const Share& share) const;
  void look_at(JobNumber job) { changed_.insert(job); }

  OutcomeOf outcome_of_;
  std::map<JobNumber, Row> rows_;
  std::unordered_map<JobNumber, std::vector<JobNumber>> dependants_;  // by what they wait for
  std::map<NameKey, std::set<JobNumber>> by_name_;                    // only while singletons exist
  std::map<NameKey, std::size_t> singletons_;
  std::unordered_map<JobNumber, std::int32_t> array_in_;
  std::unordered_map<JobNumber, std::set<JobNumber>> array_waiting_;
  std::map<std::string, Share> shares_;
  std::set<std::string> budgets_;  // shares with a limit of GPU time
  std::set<std::string> spent_;    // of these, since last asked
  double half_life_ = 0;
  std::set<std::pair<Time, JobNumber>> timers_;
  std::set<JobNumber> changed_;   // to be looked at
  std::set<std::string> opened_;  // shares in which somebody made room
  std::vector<JobNumber> looked_at_;
  std::vector<JobNumber> withdrawn_;
  std::vector<Unsatisfiable> unsatisfiable_;
};

}  // namespace berth
