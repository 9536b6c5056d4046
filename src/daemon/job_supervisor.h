// The attempts that may still be alive, where they are, and what is wanted of them. The engine may
// plan on devices that are being vacated; here a start waits until whoever is on its devices has
// gone and its end is on record. Everything decided in one pass is written in one batch; only then
// processes are made and signalled.
//
// Policies think in simulated worlds, where stopping a job costs what they believe. Here work is
// lost, so that the supervisor keeps what no policy has to think of: an attempt that is preempted goes on
// until it has run `min_run`, and a job that cannot save its work makes way for the same rival only
// once. Until then whoever was given its devices waits; if the policy gives them back to it, or it
// ends by itself, nothing has happened.
//
// A job that goes on with other devices does so in place if its training code says that it can:
// first it leaves what it has to leave, then it takes what is new once that is free
// (job_supervisor_moves.cpp). What is on record is never less than its processes use.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "core/action.h"
#include "daemon/core_allocator.h"
#include "daemon/journal_writer.h"
#include "daemon/message_queue.h"
#include "daemon/verdict.h"
#include "exec/host.h"
#include "model/cluster.h"
#include "store/ledger.h"
#include "training/training_channel.h"
#include "why/held_start.h"

namespace berth {

struct Attempt {
  AttemptId id;
  JobNumber job = 0;
  std::vector<Slice> slices;
  std::vector<HeldDevices> where;
  std::int32_t gpus = 0;
  Time since;
  Ending ending = Ending::ByItself;
  bool is_granted =
      false;  // the engine knows it is there; otherwise it is about to go or unclaimed
  bool is_left_alone = false;      // the engine has forgotten it on purpose; it ends by itself
  bool is_suspended = false;       // by the engine: its slice is over
  bool is_frozen = false;          // by a person; the engine does not know
  bool is_running = false;         // the program was seen to run
  std::int32_t rate_milli = 1000;  // how much of the time it runs
  std::string ending_why{};        // of Kill
  std::int64_t pid = 0;
  double extra_gpu_seconds = 0;    // beyond `gpus` for its whole time: it had another size before
  std::vector<Slice> requested{};  // what its code was last asked to use; empty: what it began with
  bool is_set = false;             // its code cannot go on with other devices, or did not answer
  bool is_silent = false;          // it did not: nobody asks it any more
  /// Up to when the engine has counted the time it holds devices, and its work; the first may be to
  /// come. kNever: it sleeps.
  Time held_counted{}, work_counted{};
};

/// The end of an attempt, already judged and on its way into the journal.
struct AttemptEnd {
  JobNumber job = 0;
  Verdict verdict;
  double gpu_seconds = 0;
  Ending ending = Ending::ByItself;  // what was wanted of it; it may have ended otherwise
  /// It failed by itself, and the policy says whether it is tried again: see answer().
  std::optional<FailureKind> asks_policy{};
};

class JobSupervisor {
 public:
  /// What holds whatever the policy.
  struct Rules {
    Duration min_run{};  // an attempt is not preempted before
    /// The job has shown that it can save its work; what its spec says is known.
    std::function<bool(JobNumber)> saves = {};
    bool policy_retries = false;  // whether a failed attempt is repeated the policy says
    /// Who can be asked before anybody is stopped; may be absent. Without an answer so long it is
    /// as if it had not been asked.
    TrainingChannel* training = nullptr;
    Duration answer = std::chrono::seconds{10};
  };
  /// Everything the host needs to run this attempt; an error says why it cannot be run.
  using LaunchMaker = std::function<Result<LaunchOrder>(const LedgerJob&, const Attempt&)>;
  struct Parts {
    const Cluster& cluster;
    Host& host;
    Journal& journal;
    const LiveClock& clock;
    std::uint64_t generation = 0;
    std::function<std::optional<LedgerJob>(JobNumber)> job;  // as it is on record
    LaunchMaker order;
    std::vector<std::int32_t> machine_cores;
    /// For recovery: attempts whose programs were seen to run at that time or later; the last
    /// moment that the life before this one has written down. Empty: nobody knows.
    std::function<std::set<AttemptId>(Time)> seen_to_run = {};
    std::optional<Time> last_known = {};
    Logger* log = nullptr;
    /// What an attempt is charged that has ended at that time; absent: nobody counts.
    std::function<double(JobNumber, Time)> joules = {};
    /// For people: a job on one node is bound to others than at its start.
    std::function<void(JobNumber, const std::vector<std::int32_t>&)> show_cores = {};
  };
  explicit JobSupervisor(Parts parts);

  /// After a restart: what became of each attempt without an end on record. Ends are judged and
  /// written; the living are watched.
  [[nodiscard]] Result<void> recover(const Ledger& ledger);

  /// A new engine knows of nobody yet, and what the last one planned is void.
  void begin_engine(Rules rules);
  /// The engine goes on under other rules.
  void set_rules(Rules rules) { rules_ = std::move(rules); }
  /// The last one has failed: the same, before there is a new one.
  void end_engine();
  [[nodiscard]] const Attempt* alive(JobNumber job) const;
  [[nodiscard]] const std::map<JobNumber, Attempt>& attempts() const noexcept { return attempts_; }
  /// The devices of this job's next attempt, or of the one it has if these are the same.
  /// True: it goes on where it is.
  bool start(JobNumber job, std::span<const Slice> slices, std::int32_t gpus, Reason reason,
             std::int32_t cores_milli);
  /// Its training code could go on with these devices instead of its own: start() asks it to.
  [[nodiscard]] bool can_change_in_place(JobNumber job, std::span<const Slice> slices) const;
  /// What training code said to a request of ours.
  void handle(const ResizeAnswer& answer);
  /// Its end is decided and not on record yet.
  [[nodiscard]] bool is_ending(JobNumber job) const { return over_.contains(job); }
  [[nodiscard]] bool is_about_to_start(JobNumber job) const { return pending_.contains(job); }
  void forget_start(JobNumber job) { pending_.erase(job); }
  /// Nothing if it does not run: then a start that has not happened yet is forgotten.
  void stop(JobNumber job, Ending ending, std::string why);
  /// A policy wants its devices: it is stopped as soon as the rules allow, with a flush(). Answers
  /// until when it keeps them at least. The same as stop() for a start that has not happened yet.
  /// `since`: it was wanted before already; nothing: from now on.
  Time preempt(JobNumber job, std::string why, std::optional<Time> since = {});
  /// When the next one that makes way is due to be stopped; kNever: nobody is.
  [[nodiscard]] Time next_due() const;
  /// Starts that wait for somebody who may go on for a while.
  [[nodiscard]] std::vector<HeldStart> held_starts() const;
  /// Its next attempt is decided and has not begun: its devices are not free yet.
  [[nodiscard]] bool waits_to_start(JobNumber job) const { return pending_.contains(job); }
  /// Until when a start of this job waits for others to have run long enough.
  [[nodiscard]] std::optional<Time> start_waits_until(JobNumber job) const;
  /// The same for others to leave: when they are killed at the latest, and are surely gone.
  [[nodiscard]] std::optional<Time> start_waits_for_ends(JobNumber job) const;
  /// It goes on, and the engine plans without it: whoever is given its devices waits for its end.
  /// One that is asleep is stopped, for nobody would ever wake it.
  void leave_alone(JobNumber job);
  void suspend(JobNumber job);
  /// A person suspends it, devices kept: the engine does not notice. It runs when neither does.
  void freeze(JobNumber job);
  void thaw(JobNumber job);
  /// A running job is bound to another number of cores, in all.
  void set_cores(JobNumber job, std::int32_t cores);
  /// It runs so much of the time, in thousandths; before it starts: from its start on.
  void set_rate(JobNumber job, std::int32_t milli);
  /// Its time limit was changed; nothing if it does not run.
  void set_limit(JobNumber job, std::int64_t seconds);
  /// The engine goes on from before, and this job where it is: nobody hears of it.
  void keep(JobNumber job, Time held_from, Time work_from);
  /// Ends that were found after a restart, since last asked.
  [[nodiscard]] std::vector<AttemptEnd> take_found_ends() { return std::exchange(found_ends_, {}); }
  /// What happened to a process. An end is judged, and its record goes with the next flush().
  /// One that asks the policy is not ended before the answer.
  [[nodiscard]] std::optional<AttemptEnd> handle(const HostEvent& event);
  /// Nothing is said: as its user has asked.
  [[nodiscard]] std::optional<AttemptEnd> answer(JobNumber job, std::optional<bool> again);
  /// The job never ran or does not run, and is over. False: its end is on its way already.
  bool end_without_attempt(JobNumber job, Outcome outcome, std::string why);
  /// Something is wrong with the job: it is held in the scheduler's name, and goes on if it runs.
  void set_aside(JobNumber job, std::string why);
  /// It was not the job's fault.
  void let_go(JobNumber job);
  /// Something for the journal that goes with the next flush().
  void note(RecordBody record) { records_.push_back(std::move(record)); }
  /// Writes what was decided, then acts.
  [[nodiscard]] Result<void> flush();
  /// A pass of the engine, to be written with the records of the next flush(), or soon after it if
  /// there are none: nobody waits for it.
  void note_pass(EngineRecord pass);
  /// Jobs whose program was seen to run since last asked.
  [[nodiscard]] std::vector<JobNumber> take_started() { return std::exchange(started_, {}); }
  /// Starts that could not be made after all, since last asked.
  void take_failed_starts(std::vector<AttemptEnd>& failed);

 private:
  struct PendingStart {
    std::vector<Slice> slices;
    std::int32_t gpus = 0;
    Reason reason = Reason::None;
    std::int32_t cores_milli = 0;
    std::int32_t rate_milli = 1000;
  };
  struct Asked {  // the end of an attempt, before the policy's answer
    Verdict verdict;
    std::optional<ExitRecord> exit;
  };
  /// One that goes on with other devices in place.
  struct Move {
    PendingStart to;
    std::vector<Slice> asked{};      // what its code was asked to use
    std::uint64_t id = 0;            // of that question
    std::optional<Time> until = {};  // an answer is waited for
  };
  struct Signal {
    enum class Kind : std::uint8_t {
      Stop,
      Suspend,
      Resume,
      Cores,
      Limit,
      Rate,
      Leave,
      Resize
    } kind{};
    AttemptId attempt;
    std::int64_t grace = 0;
    std::vector<std::int32_t> cores{};
    std::int64_t limit = 0;
    std::int32_t rate = 0;
    JobNumber job = 0;  // Leave, Resize
    ResizeAsk ask{};
  };
  void send(const Signal& signal);
  void hold_cores(Attempt& attempt, std::vector<std::int32_t> cores);
  void go_on_with_moves();
  void ask(JobNumber job, Move& move, std::vector<Slice> slices);
  void hold(JobNumber job, const Move& move, const std::vector<Slice>& slices);
  void stop_and_start(JobNumber job, std::string why);
  void warn_who_stayed();
  [[nodiscard]] bool leaves(JobNumber job, const std::pair<std::uint32_t, int>& device) const;
  [[nodiscard]] Time move_due(const Attempt& attempt) const;
  [[nodiscard]] bool is_vacant(JobNumber job, const PendingStart& start);
  [[nodiscard]] bool is_clear(JobNumber job, std::span<const Slice> slices) const;
  void wake_sleepers();
  void push_aside(JobNumber by, std::span<const Slice> slices);
  [[nodiscard]] std::set<JobNumber> on_devices(std::span<const Slice> slices) const;
  [[nodiscard]] std::set<JobNumber> rivals_of(const Attempt& attempt) const;
  [[nodiscard]] bool can_save(const LedgerJob& job) const;
  [[nodiscard]] Time due_of(const Attempt& attempt) const;
  void stop_whom_rules_allow();
  [[nodiscard]] std::string min_run_text() const;
  void want_stop(Attempt& attempt, Ending ending, std::string why,
                 const std::set<JobNumber>& rivals = {});
  void begin_vacant_starts(std::vector<JobNumber>& begun);
  void launch(JobNumber job);
  [[nodiscard]] Result<void> launch_by(const LaunchOrder& order) const;
  [[nodiscard]] Result<LaunchOrder> order_of(const LedgerJob& job, const Attempt& attempt) const;
  /// Answers the GPU seconds it took. Without an exit record it is charged `until` then; nothing:
  /// until now.
  double end(JobNumber job, const Verdict& verdict, const ExitRecord* exit,
             std::optional<Time> until = {});
  /// `oldest`: since when any attempt is on record as alive.
  void end_found(const LedgerJob& job, const Finding& finding, Time oldest);
  void remove(JobNumber job);
  [[nodiscard]] std::optional<AttemptEnd> ask_or_end(JobNumber job, Verdict verdict,
                                                     const ExitRecord* exit, Ending ending);
  /// Passes that are not written yet. Shared with orders that are still to be carried out by the
  /// journal_writer: whoever comes first takes them all, so that they stay in order.
  struct Unwritten {
    std::mutex mutex;
    std::vector<RecordBody> passes;
    [[nodiscard]] std::vector<RecordBody> take() {
      const std::lock_guard lock{mutex};
      return std::exchange(passes, {});
    }
  };
  [[nodiscard]] Result<void> write_records();
  [[nodiscard]] std::vector<HeldDevices> where(JobNumber job, const PendingStart& start);
  [[nodiscard]] std::vector<Slice> slices_of(const std::vector<HeldDevices>& where) const;

  Parts parts_;
  CoreAllocator cores_;
  std::map<JobNumber, Attempt> attempts_;
  std::map<AttemptId, JobNumber> job_of_;
  std::map<std::pair<std::uint32_t, int>, std::set<JobNumber>> on_device_;
  std::map<JobNumber, PendingStart> pending_;
  std::map<JobNumber, Asked> asked_;
  std::set<JobNumber> resuming_;  // granted their devices again, still asleep
  Rules rules_;
  std::map<JobNumber, Move> moves_;
  std::uint64_t questions_ = 0;
  std::map<JobNumber, Time> asked_to_leave_;  // the warning follows then
  std::map<JobNumber, std::string> leaving_;  // preempted, not stopped yet; why
  std::map<JobNumber, std::int32_t> launch_failures_;
  std::map<JobNumber, std::int32_t> losses_;  // of attempts, in a row
  std::optional<std::set<AttemptId>> seen_to_run_;
  std::vector<RecordBody> records_;
  std::set<JobNumber> over_;  // for good, by one of these records
  std::vector<Signal> signals_;
  std::vector<AttemptId> forgotten_;
  std::vector<AttemptEnd> failed_starts_;
  std::vector<AttemptEnd> found_ends_;
  std::shared_ptr<Unwritten> unwritten_ = std::make_shared<Unwritten>();
  bool has_passes_ = false;  // since the last were handed on
  std::vector<JobNumber> started_;
  std::uint64_t counter_ = 0;
};

}  // namespace berth
