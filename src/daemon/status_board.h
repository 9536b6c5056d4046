// What readers see: the ledger as far as it is durable, with what is known of processes beside it.
// The journal writer publishes to it after each commit, the engine's thread adds notes. A reader
// never waits for a scheduling pass or a disk. Notes are lost by a restart. Safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/journal_writer.h"
#include "daemon/progress_estimate.h"
#include "daemon/service.h"
#include "store/ledger.h"

namespace berth {

/// What is known of a job beyond the records; lost by a restart.
struct JobNote {
  std::int64_t pid = 0;
  bool is_running = false;    // the program was seen to run
  std::string waits_because;  // of a job that has not started: one short phrase
  WaitCode code{};
  bool is_blocked = false;  // by a gate: it does not compete yet
  std::optional<TrainingView> training;
  std::int64_t training_heard = 0;                   // Unix microseconds
  std::optional<ProgressEstimate> progress{};        // while it runs
  std::int64_t progress_wall = 0;                    // Unix microseconds of its moment
  std::optional<std::vector<std::int32_t>> cores{};  // bound to since its start
};

class StatusBoard final {
 public:
  explicit StatusBoard(Ledger ledger);
  /// Output paths of a job, patterns replaced: set once, before anyone asks.
  using PathsOf = std::function<std::pair<std::string, std::string>(const LedgerJob&)>;
  void set_paths(PathsOf paths) { paths_ = std::move(paths); }

  // The writers.
  void publish(std::span<const Committed> records, std::int64_t wall);
  void note(JobNumber job, const std::function<void(JobNote&)>& edit);
  void set_free(std::int64_t gpus) noexcept { free_gpus_ = gpus; }

  // The readers.
  [[nodiscard]] std::optional<LedgerJob> find(JobNumber job) const;
  [[nodiscard]] std::vector<LedgerJob> all() const;
  [[nodiscard]] std::optional<JobView> view(JobNumber job, std::int64_t wall) const;
  [[nodiscard]] JobPage page(const JobFilter& filter, std::int64_t wall) const;
  /// Those of them that do not live.
  [[nodiscard]] std::vector<JobNumber> missing(std::span<const JobNumber> numbers) const;
  /// What the next job will be called.
  [[nodiscard]] JobNumber next_number() const;
  [[nodiscard]] std::optional<JobNumber> by_key(const std::string& user,
                                                const std::string& key) const;
  [[nodiscard]] std::map<std::string, std::string> settings() const;
  [[nodiscard]] std::optional<std::string> setting(const std::string& key) const;
  /// In order of number, while nobody writes.
  void for_each(const std::function<void(const LedgerJob&)>& visit) const;
  /// What a job holds on one node.
  struct Holding {
    JobNumber job = 0;
    HeldDevices where;
    std::int32_t cores = 0;  // that it is bound to or, where it is bound to none, that it asked for
  };
  [[nodiscard]] std::vector<Holding> holdings() const;
  struct RunningJob {
    JobNumber job = 0;
    std::int64_t pid = 0;  // 0: not known
    std::vector<HeldDevices> where;
  };
  [[nodiscard]] std::vector<RunningJob> running() const;
  /// Grows with every change of a setting.
  [[nodiscard]] std::uint64_t settings_version() const noexcept { return settings_version_; }
  struct Counts {
    std::size_t pending = 0, running = 0, held = 0;
  };
  [[nodiscard]] Counts counts() const;
  /// Jobs that are held in the scheduler's own name.
  [[nodiscard]] std::size_t set_aside() const;
  /// Jobs that have ended in this life, by how.
  [[nodiscard]] std::map<Outcome, std::uint64_t> ended() const;
  [[nodiscard]] std::size_t jobs_of(const std::string& user) const;
  [[nodiscard]] JobView past_view(const PastJob& past, Rows rows = Rows::Whole) const;

  [[nodiscard]] std::unique_ptr<Service::Subscription> subscribe(
      std::uint64_t after, std::function<void(const ServiceEvent&)> listener);
  [[nodiscard]] std::uint64_t latest() const;

 private:
  class Listening;
  struct Listeners {  // outlives the board if somebody still holds a subscription
    std::mutex mutex;
    std::map<std::uint64_t, std::function<void(const ServiceEvent&)>> all;
    std::uint64_t next = 1;
    std::deque<ServiceEvent> kept;
    std::uint64_t sequence = 0;
  };
  [[nodiscard]] JobView view_of(const LedgerJob& job, std::int64_t wall,
                                Rows rows = Rows::Whole) const;
  [[nodiscard]] WaitCode code_of(const LedgerJob& job, LiveState state) const;
  [[nodiscard]] LiveState state_of(const LedgerJob& job) const;
  void tell(ServiceEvent event);

  mutable std::shared_mutex mutex_;
  Ledger ledger_;
  std::unordered_map<JobNumber, JobNote> notes_;
  std::map<std::string, std::set<JobNumber>> by_user_;
  std::set<JobNumber> live_attempts_;
  std::set<JobNumber> held_;
  std::map<Outcome, std::uint64_t> ended_;
  PathsOf paths_;
  std::atomic<std::int64_t> free_gpus_ = 0;
  std::atomic<std::uint64_t> settings_version_ = 1;
  std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
};

}  // namespace berth
