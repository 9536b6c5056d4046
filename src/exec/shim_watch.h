// Watches shims, those we made and those we found, and tells of each when its program runs and when
// it is gone. One thread, asleep until the kernel has news: a thousand idle jobs cost nothing. All
// methods may be called from any thread. The sink is called from the watching thread only, one
// event after the other, with no lock held; it may call back, but must not destroy the watch.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/host.h"
#include "exec/run_dir.h"
#include "exec/shim_handle.h"

namespace berth {

class ShimWatch {
 public:
  using Sink = std::function<void(HostEvent)>;
  using Clock = std::chrono::steady_clock;

  ShimWatch(RunDir directory, Sink sink);
  /// Shims live on.
  ~ShimWatch();
  ShimWatch(const ShimWatch&) = delete;
  ShimWatch& operator=(const ShimWatch&) = delete;

  [[nodiscard]] Result<void> start();
  [[nodiscard]] bool has(AttemptId attempt) const;
  /// One that we made: its pipe tells when it has claimed.
  void add_made(JobNumber job, AttemptId attempt, Fd pipe);
  /// One that another life of the scheduler made.
  void add_found(JobNumber job, AttemptId attempt, ShimHandle shim);
  /// Tells again, after a while, that this one is lost: what became of it cannot be told yet. Waits
  /// longer each time.
  void look_again(JobNumber job, AttemptId attempt);
  /// Its end is known.
  void forget(AttemptId attempt);
  /// Waits until the shim has claimed, if it has not yet. One that is not watched is over and needs
  /// none. False: a living shim could not be told.
  [[nodiscard]] bool send(AttemptId attempt, ShimCommand command);

 private:
  struct Watched {
    JobNumber job = 0;
    Fd pipe;
    std::string text;  // of the pipe, up to the next end of a line
    std::optional<ShimHandle> shim;
    std::vector<ShimCommand> waiting;
    bool is_started = false;
    int file_watch = -1;  // of a found claim whose program does not yet run
  };
  using Table = std::map<AttemptId, Watched>;

  struct Later {
    JobNumber job = 0;
    Clock::time_point due;
    std::chrono::seconds pause{0};
    bool is_due = false;  // otherwise told already, or not lost any more
  };

  void run();
  [[nodiscard]] int until_next() const;
  void tell_due(std::vector<HostEvent>& news);
  void handle(std::uint64_t token, std::vector<HostEvent>& news);
  void read_pipe(Table::iterator entry, std::vector<HostEvent>& news);
  void handle_line(AttemptId attempt, Watched& entry, const std::string& line,
                   std::vector<HostEvent>& news);
  void read_file_watches(std::vector<HostEvent>& news);
  void look_for_start(AttemptId attempt, Watched& entry, std::vector<HostEvent>& news);
  void begin_control(AttemptId attempt, Watched& entry);
  void end(Table::iterator entry, std::vector<HostEvent>& news);
  void listen(int fd, AttemptId attempt);
  void ignore(int fd);
  void wake() const;

  const RunDir directory_;
  const Sink sink_;
  Fd poll_, wake_, files_;

  mutable std::mutex mutex_;
  Table table_;
  // Pipes and shims by tokens that are never used again: the number of a descriptor closed by one
  // event of a batch may belong to another shim before the next event is looked at.
  std::map<std::uint64_t, std::pair<AttemptId, int>> listened_;
  std::uint64_t last_token_ = 1;
  std::map<int, AttemptId> by_file_;  // file watches
  std::vector<HostEvent> news_;       // of callers' threads, to be told by ours
  std::map<AttemptId, Later> later_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace berth
