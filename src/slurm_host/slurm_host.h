// Attempts as runs of Slurm's jobs. Slurm is the truth about processes, our journal about
// decisions: turn() reads what Slurm says, brings new jobs into the journal, tells the scheduler
// what has become of its attempts, and sends what is wanted and is not so. It sends nothing twice
// without a reading in between, places only what is held and claimed in the journal, and holds
// what waits unheld although nobody here has placed it.
//
// turn() belongs to one thread (poll_thread.h; a test's own). The methods of Host may be called
// from any other: they only note what is wanted.
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
#include <vector>

#include "base/log.h"
#include "base/log_limit.h"
#include "daemon/journal_writer.h"
#include "exec/host.h"
#include "model/cluster.h"
#include "slurm/link.h"
#include "slurm_host/node_watch.h"
#include "slurm_host/poll_thread.h"
#include "slurm_host/run_track.h"
#include "slurm_host/slurm_book.h"

namespace berth {

class SlurmHost final : public Host {
 public:
  struct Parts {
    slurm::Link& link;
    const Cluster& cluster;
    Journal& journal;
    /// A job as it is on record; nothing: it is over.
    std::function<std::optional<LedgerJob>(JobNumber)> job;
    /// A job that is over and was made with this key; an error: nobody can say.
    std::function<Result<std::optional<JobNumber>>(const std::string& user, const std::string& key)>
        past_key;
    std::function<std::optional<std::string>(const std::string&)> setting;
    std::function<void(HostEvent)> tell;
    std::function<std::int64_t()> now;  // Unix seconds
    Logger* log = nullptr;
    LogLimit* limit = nullptr;
    TrackRules rules = {};
  };
  /// `ledger`: what is left of earlier lives.
  SlurmHost(Parts parts, const Ledger& ledger);

  /// Whether Slurm could be read.
  bool turn();
  /// Turns in a thread of their own from now on, until the end.
  void start_polling(std::chrono::milliseconds every);

  [[nodiscard]] Result<void> launch(const LaunchOrder& order) override;
  void stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) override;
  void stop_for_good(AttemptId attempt, std::int64_t grace_seconds) override;
  void suspend(AttemptId attempt) override;
  void resume(AttemptId attempt) override;
  void signal(AttemptId attempt, int number) override;
  void signal_shell(AttemptId attempt, int number) override;
  void set_cores(AttemptId, const std::vector<std::int32_t>&) override {}  // not an ability of ours
  void set_rate(AttemptId, std::int32_t) override {}
  /// turn() compares limits with the journal's: both sides may change them.
  void set_limit(AttemptId, std::int64_t) override {}
  [[nodiscard]] Result<Finding> look(JobNumber job, AttemptId attempt) override;
  void forget(AttemptId attempt) override;

 private:
  /// What both sides know of an attempt.
  struct Entry {
    JobNumber job = 0;
    std::vector<HeldDevices> where{};
    RunWish wish{};
    std::vector<int> signals{};  // to be sent once
    bool is_watched = false;     // the scheduler waits to hear of it
    bool is_asked = false;       // look() had no answer
    bool is_running = false;
    std::optional<Finding> finding{};
  };
  [[nodiscard]] bool read();
  void take_entries();
  void mirror(const std::vector<SlurmBook::Unknown>& unknown);
  void submit(const std::vector<SlurmBook::Unknown>& newcomers);
  [[nodiscard]] bool may_come(const SlurmBook::Unknown& unknown);
  void follow();
  void follow_one(RunTrack& track);
  void publish_begun(const RunTrack& track, const slurm::Job& job);
  void publish(const RunTrack& track, Finding finding);
  void send_signals();
  void place();
  [[nodiscard]] slurm::Placement placement_of(const RunTrack& track, const slurm::Job& job,
                                              const std::optional<Claim>& last) const;
  void hold_unplaced();
  void hold(const slurm::Job& job);
  void settle();
  void settle_one(BookedJob& booked);
  void follow_limit(BookedJob& booked, const LedgerJob& ours);
  void watch_nodes();
  [[nodiscard]] bool is_placed(const BookedJob& booked) const;
  [[nodiscard]] const RunTrack* track_of(JobNumber job) const;
  /// Sends a verb unless Slurm has stopped answering in this turn.
  template <class Send>
  slurm::Linked<void> ask(std::string_view what, const std::string& ref, Send send);
  void note_trouble(std::string_view cause, std::string_view what, const std::string& why) const;
  void write(std::vector<RecordBody> records);
  void set_wish(AttemptId attempt, const std::function<void(Entry&)>& change);

  Parts parts_;
  std::mutex mutex_;  // of entries_
  std::map<AttemptId, Entry> entries_;
  // Of turn():
  SlurmBook book_;
  std::map<AttemptId, RunTrack> tracks_;
  std::map<JobNumber, AttemptId> track_by_job_;
  std::map<AttemptId, RunWish> wishes_;
  std::vector<slurm::Job> jobs_;
  std::vector<slurm::Node> nodes_;
  std::map<std::string, std::vector<std::string>> partitions_;
  std::set<std::uint32_t> told_obstacles_;
  std::vector<AttemptId> to_place_;
  std::set<const slurm::Job*> held_;  // in this turn
  std::int64_t now_ = 0;
  std::int64_t partitions_at_ = 0;
  bool is_reachable_ = true;
  std::unique_ptr<PollThread> poll_;  // the last: it uses everything above
};

}  // namespace berth
