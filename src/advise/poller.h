// Reads a Slurm again and again in a thread of its own and keeps the last good picture. Jobs and
// nodes come every few seconds, what changes seldom every minute; a Slurm that answers slowly is
// asked less often, one that does not answer less and less often, up to once a minute. What could
// not be read keeps its last value, and `troubles` says so in words. Asks only: no verb of the link
// that changes anything is ever called.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "advise/sight.h"
#include "base/log.h"
#include "slurm/link.h"

namespace berth::advise {

struct PollOptions {
  std::chrono::milliseconds poll{5'000};     // between two readings of jobs and nodes, at least
  std::chrono::milliseconds rarely{60'000};  // of partitions, reservations, settings, topology
};

struct PollFigures {
  std::uint64_t polls = 0;
  std::map<std::string, std::uint64_t> failures{};  // by what could not be read
  double last_seconds = 0, worst_seconds = 0;
  std::uint64_t vanished = 0;  // jobs that were gone before their end was seen
};

/// A job whose state is another than at the reading before.
struct JobChange {
  const slurm::Job& job;
  const char* what;  // "submit", "started", "change", "end"
};

class Poller {
 public:
  struct Parts {
    slurm::Link& link;  // nobody else uses it while this lives
    Logger& log;
    PollOptions options{};
    std::function<std::int64_t()> wall;  // Unix microseconds
    /// In the poller's thread, after a new picture is there.
    std::function<void(const Sight&, const JobChange&)> changed = {};
  };
  explicit Poller(Parts parts);
  ~Poller();  // stops
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void start();
  void stop();
  /// One reading, and how long to wait before the next. For whoever has no thread (tests).
  std::chrono::milliseconds poll_once();

  // From any thread.
  [[nodiscard]] SightPtr sight() const;
  /// What stands in the way of complete answers, for people; empty: nothing.
  [[nodiscard]] std::vector<std::string> troubles() const;
  [[nodiscard]] PollFigures figures() const;
  /// Jobs that were seen to be over since the start, the latest last; at most some thousands.
  [[nodiscard]] std::vector<slurm::Job> ended() const;

 private:
  void read_rarely(Sight& next);
  [[nodiscard]] bool read_often(Sight& next);
  template <class Value, class Take>
  bool take(const char* what, slurm::Linked<Value> said, Take into);
  void note(const std::string& what, const std::string& text);
  void forget(const std::string& what);
  void note_lasting(const Sight& sight);
  void compare(const Sight& before, const Sight& after);
  void keep_ended(const slurm::Job& job);
  void publish(Sight next, double seconds);
  void run(const std::stop_token& stop);
  [[nodiscard]] std::chrono::milliseconds pause_after(double seconds, bool is_read) const;

  Parts parts_;
  std::chrono::steady_clock::time_point rarely_read_{};
  bool has_read_rarely_ = false;
  std::uint32_t failed_in_a_row_ = 0;

  mutable std::mutex mutex_;  // of what follows
  SightPtr sight_ = std::make_shared<const Sight>();
  std::map<std::string, std::string> troubles_;  // by what they are about
  std::int64_t unread_since_ = 0;                // Unix microseconds; 0: the last reading worked
  PollFigures figures_;
  std::deque<slurm::Job> ended_;
  std::set<slurm::RunKey> ended_keys_;

  std::condition_variable_any wake_;
  std::jthread thread_;  // last: ends before the rest
};

}  // namespace berth::advise
