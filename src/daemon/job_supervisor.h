// The attempts that may still be alive, where they are, and what is wanted of them. The engine may
// plan on devices that are being vacated; here a start waits until whoever is on its devices has
// gone and its end is on record. Everything decided in one pass is written in one batch; only then
// processes are made and signalled.
//
// It keeps what no policy has to think of (departures.h): nobody is stopped a moment after it
// began. Until then whoever was given its devices waits; if the policy gives them back to it, or it
// ends by itself, nothing has happened. A job that goes on with other devices does so in place if
// its training code says that it can (in_place_moves.h). What is on record is never less than its
// processes use. Engine's thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "core/action.h"
#include "daemon/attempt.h"
#include "daemon/attempt_ends.h"
#include "daemon/attempt_launcher.h"
#include "daemon/attempt_table.h"
#include "daemon/decision_batch.h"
#include "daemon/departures.h"
#include "daemon/in_place_moves.h"
#include "daemon/journal_writer.h"
#include "daemon/message_queue.h"
#include "daemon/pending_starts.h"
#include "exec/host.h"
#include "model/cluster.h"
#include "store/ledger.h"

namespace berth {

class JobSupervisor {
 public:
  using Rules = SupervisorRules;
  struct Parts {
    const Cluster& cluster;
    Host& host;
    Journal& journal;
    const LiveClock& clock;
    std::uint64_t generation = 0;
    JobLookup job;
    AttemptLauncher::OrderMaker order;
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
  JobSupervisor(const JobSupervisor&) = delete;  // its parts refer to each other
  JobSupervisor& operator=(const JobSupervisor&) = delete;

  // --- lives of the scheduler and of engines

  /// After a restart: what became of each attempt without an end on record. Ends are judged and
  /// written; the living are watched.
  [[nodiscard]] Result<void> recover(const Ledger& ledger);
  /// Ends that were found after a restart, since last asked.
  [[nodiscard]] std::vector<AttemptEnd> take_found_ends() { return std::exchange(found_ends_, {}); }
  /// A new engine knows of nobody yet, and what the last one planned is void.
  void begin_engine(Rules rules);
  /// The engine goes on under other rules.
  void set_rules(Rules rules) { rules_ = std::move(rules); }
  /// The last one has failed: the same, before there is a new one.
  void end_engine();
  /// The engine goes on from before, and this job where it is: nobody hears of it.
  void keep(JobNumber job, Time held_from, Time work_from);

  // --- what the engine wants

  /// The devices of this job's next attempt, or of the one it has if these are the same.
  /// True: it goes on where it is.
  bool start(JobNumber job, std::span<const Slice> slices, std::int32_t gpus, Reason reason,
             std::int32_t cores_milli);
  void forget_start(JobNumber job) { starts_.erase(job); }
  /// Its training code could go on with these devices instead of its own: start() asks it to.
  [[nodiscard]] bool can_change_in_place(JobNumber job, std::span<const Slice> slices) const {
    return moves_.is_possible(job, slices);
  }
  /// Nothing if it does not run: then a start that has not happened yet is forgotten.
  void stop(JobNumber job, Ending ending, std::string why);
  /// The same, and the job stays where the engine has planned it: for ends that the engine does not
  /// decide on. Its next attempt begins when this one has gone.
  void stop_attempt(JobNumber job, Ending ending, std::string why);
  /// A policy wants its devices: it is stopped as soon as the rules allow, with a flush(). Answers
  /// until when it keeps them at least. The same as stop() for a start that has not happened yet.
  /// `since`: it was wanted before already; nothing: from now on.
  Time preempt(JobNumber job, std::string why, std::optional<Time> since = {});
  /// It goes on, and the engine plans without it: whoever is given its devices waits for its end.
  /// One that is asleep is stopped, for nobody would ever wake it.
  void leave_alone(JobNumber job);
  void suspend(JobNumber job);
  /// A running job is bound to another number of cores, in all.
  void set_cores(JobNumber job, std::int32_t cores);
  /// It runs so much of the time, in thousandths; before it starts: from its start on.
  void set_rate(JobNumber job, std::int32_t milli);

  // --- what people want

  /// A person suspends it, devices kept: the engine does not notice. It runs when neither does.
  void freeze(JobNumber job);
  void thaw(JobNumber job);
  /// Its time limit was changed; nothing if it does not run.
  void set_limit(JobNumber job, std::int64_t seconds);
  /// The job never ran or does not run, and is over. False: its end is on its way already.
  bool end_without_attempt(JobNumber job, Outcome outcome, std::string why);
  /// Something is wrong with the job: it is held in the scheduler's name, and goes on if it runs.
  void set_aside(JobNumber job, std::string why);
  /// It was not the job's fault.
  void let_go(JobNumber job);

  // --- what happens

  /// What training code said to a request of ours.
  void handle(const ResizeAnswer& answer);
  /// What happened to a process. An end is judged, and its record goes with the next flush().
  /// One that asks the policy is not ended before the answer.
  [[nodiscard]] std::optional<AttemptEnd> handle(const HostEvent& event);
  /// Nothing is said: as its user has asked.
  [[nodiscard]] std::optional<AttemptEnd> answer(JobNumber job, std::optional<bool> again);

  // --- writing and acting

  /// Something for the journal that goes with the next flush().
  void note(RecordBody record) { batch_.record(std::move(record)); }
  /// A pass of the engine, to be written with the records of the next flush(), or soon after it if
  /// there are none: nobody waits for it.
  void note_pass(EngineRecord pass) { batch_.note_pass(std::move(pass)); }
  /// Writes what was decided, then acts.
  [[nodiscard]] Result<void> flush();
  /// When the next flush() has something to do although nothing has happened; kNever: it has not.
  [[nodiscard]] Time next_due() const {
    return std::min(departures_.next_due(), moves_.next_due());
  }
  /// Jobs whose program was seen to run since last asked.
  [[nodiscard]] std::vector<JobNumber> take_started() { return std::exchange(started_, {}); }
  /// Starts that could not be made after all, since last asked.
  void take_failed_starts(std::vector<AttemptEnd>& failed);

  // --- questions

  [[nodiscard]] const Attempt* alive(JobNumber job) const { return attempts_.find(job); }
  [[nodiscard]] const std::map<JobNumber, Attempt>& attempts() const noexcept {
    return attempts_.all();
  }
  /// Its end is decided and not on record yet.
  [[nodiscard]] bool is_ending(JobNumber job) const { return batch_.ends(job); }
  /// Its next attempt is decided and has not begun: its devices are not free yet.
  [[nodiscard]] bool waits_to_start(JobNumber job) const { return starts_.contains(job); }
  /// Starts that wait for somebody who may go on for a while.
  [[nodiscard]] std::vector<HeldStart> held_starts() const { return departures_.held_starts(); }
  /// Until when a start of this job waits for others to have run long enough.
  [[nodiscard]] std::optional<Time> start_waits_until(JobNumber job) const {
    return departures_.start_waits_until(job);
  }
  /// The same for others to leave: when they are killed at the latest, and are surely gone.
  [[nodiscard]] std::optional<Time> start_waits_for_ends(JobNumber job) const;

 private:
  void push_aside(JobNumber by, std::span<const Slice> slices);
  void want_stop(Attempt& attempt, Ending ending, std::string why,
                 const std::set<JobNumber>& rivals = {});
  void restart_elsewhere(InPlaceMoves::Failed move);
  void stop_whom_rules_allow();
  void warn_who_stayed();
  void wake_sleepers();
  [[nodiscard]] bool is_vacant(JobNumber job, const PendingStart& start) const;
  [[nodiscard]] bool is_clear(JobNumber job, std::span<const Slice> slices) const;
  void begin_vacant_starts(std::vector<JobNumber>& begun);
  void launch(JobNumber job);
  void see_started(Attempt& attempt, std::int64_t pid);
  [[nodiscard]] std::optional<AttemptEnd> ask_or_end(JobNumber job, Verdict verdict,
                                                     const ExitRecord* exit, Ending ending);
  /// Answers the GPU seconds it took.
  double end(JobNumber job, const Verdict& verdict, const ExitRecord* exit,
             std::optional<Time> until = {});

  Parts parts_;
  Rules rules_;
  AttemptTable attempts_;
  PendingStarts starts_;
  DecisionBatch batch_;
  Departures departures_;
  InPlaceMoves moves_;
  AttemptEnds ends_;
  AttemptLauncher launcher_;
  std::vector<AttemptEnd> failed_starts_;
  std::vector<AttemptEnd> found_ends_;
  std::vector<JobNumber> started_;
  std::uint64_t counter_ = 0;
};

}  // namespace berth
