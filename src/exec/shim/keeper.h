// Keeps one attempt from its first process to its last: starts the tasks, waits, passes on what the
// scheduler says, enforces the time limit, and sees to it that nothing is left. One thread that
// sleeps in sigwaitinfo: it wakes for a child, a command or a deadline, and never otherwise.
//
// The first task that fails ends the others; when all tasks are over, what they left behind is
// asked to go and killed after the grace. The limit counts time on the boot clock while not
// suspended. One that is to run only part of the time is frozen for the rest of each fifth of a
// second; to its limit that is time like any other.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "exec/order_file.h"
#include "exec/run_dir.h"
#include "exec/shim/family.h"
#include "exec/shim_protocol.h"

namespace berth {

class Keeper {
 public:
  /// `started` is called with the first task's process when all tasks run.
  Keeper(RunDir directory, ShimOrder shim, std::function<void(pid_t)> started);
  /// Returns when the last process is gone. All signals must be blocked.
  [[nodiscard]] ExitRecord run();

 private:
  enum class Phase : std::uint8_t { Running, Ending, Killing };
  struct Task {
    pid_t pid = 0;
    bool is_over = false;
  };

  [[nodiscard]] Result<void> start_all();
  void wait();
  void reap();
  void note_end(pid_t pid, int status);
  void obey(ShimCommand command);
  void obey_stop(ShimCommand command);
  void read_cores();
  void set_limit(std::int64_t seconds);
  void set_rate(std::int64_t milli);
  void join(std::int64_t request);
  void watch_rate();
  void watch_clock();
  void watch_limit();
  void warn();
  void signal_job(int number);
  void ask_everybody(int signal);
  void signal_tasks(int number);
  enum class Ask : std::uint8_t { Warning, Leave };  // as the job wants it, or SIGTERM to all
  void begin_end(Ask ask, std::int64_t grace_seconds);
  void kill_all();
  void set_timer();
  [[nodiscard]] std::optional<std::int64_t> next_deadline() const;
  [[nodiscard]] std::optional<std::int64_t> next_of_limit() const;
  [[nodiscard]] std::int64_t active_micros() const;
  [[nodiscard]] std::int64_t suspended_micros() const;
  void end_suspension();
  void finish(ExitRecord& record) const;

  RunDir directory_;
  ShimOrder shim_;
  std::function<void(pid_t)> started_;
  std::string claim_;
  std::string tmp_;  // of the attempt; empty: none
  std::vector<std::string> cleanup_environment_;
  std::string node_;  // its name, for messages
  timer_t timer_{};

  Family family_;
  std::vector<Task> tasks_;
  std::size_t open_tasks_ = 0;
  bool has_children_ = false;
  bool has_failed_ = false;
  bool is_script_ = false;
  ExitRecord record_;
  Phase phase_ = Phase::Running;
  bool was_warned_of_limit_ = false;
  bool is_everybody_asked_ = false;  // to leave or to save, not the shells alone
  std::int64_t kill_at_ = 0;         // of Ending; in Killing: when to look again
  std::int64_t kill_pause_ = 0;      // between looks
  std::int64_t active_before_ = 0;   // up to the last suspend
  std::int64_t active_since_ = 0;
  bool is_suspended_ = false;          // by command
  std::int64_t suspended_since_ = 0;   // of that
  std::int64_t suspended_before_ = 0;  // up to the last resume
  std::int64_t rate_milli_ = 1000;
  bool is_resting_ = false;   // for its rate
  std::int64_t rate_at_ = 0;  // when it rests or goes on
};

}  // namespace berth
