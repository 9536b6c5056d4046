// Where attempts really run. A host makes processes, signals them, and tells how they ended; it
// never decides. Everything that must outlive the scheduler is in files of the run directory: a
// claim (whoever creates it wins), the launch order, the exit record. The local one
// (exec/local_host.h) uses a small shim process per attempt; tests have one without processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/record.h"

namespace berth {

/// A limit given to a running attempt travels in a signal: 97 days are the most that fits.
inline constexpr std::int64_t kMaxLimitOfRunning = (1 << 23) - 1;

/// Open files of a process.
struct FileLimits {
  std::uint64_t soft = 0, hard = 0;  // hard 0: as they are
  friend bool operator==(const FileLimits&, const FileLimits&) = default;
};

/// Everything a shim needs to run an attempt without asking anyone.
struct LaunchOrder {
  JobNumber job = 0;
  AttemptId attempt;
  std::string script;                // its text; empty: command
  std::vector<std::string> command;  // argv, or the script's arguments
  std::string workdir;
  std::vector<std::pair<std::string, std::string>> env;  // complete: nothing is inherited
  std::vector<std::string>
      cleanup;  // run by the shim when all is over, as the user; empty: nothing
  std::string input, output, error;  // patterns replaced but for %t and %%, done for each task
  bool append_output = false;
  std::int32_t tasks = 1;  // started so often
  bool ranks = false;      // RANK and LOCAL_RANK in each
  std::uint32_t umask = 022;
  std::string tmp_root = "/tmp";   // a directory of its own is made there; empty: none
  std::uint32_t uid = 0, gid = 0;  // as whom it runs
  std::vector<std::uint32_t> groups;
  std::vector<std::int32_t> cores;  // bound to; empty: any
  std::string grant;                // for its steps, as it is put on record (step/grant.h)
  std::int64_t memory_mib = 0;      // limit where the machine allows it; 0 = none
  FileLimits files;
  std::int64_t time_limit = 0;    // seconds, enforced by the shim; 0 = none
  std::int64_t warn_seconds = 0;  // so long before it
  std::int32_t warn_signal = 15;
  bool warn_shell = false;  // to the tasks' own processes alone, not to what they have started
  std::int64_t grace_seconds = 30;
  std::string helper;  // program that hosts sessions of whoever steps into it; empty: none
};

/// Whether the end followed a stop that was asked for.
enum class Stopped : std::uint8_t {
  No,
  Warned,  // it went after the warning, within its grace
  Killed,  // it had to be killed, at once or after its grace
};

/// What the shim wrote down when the last process of the attempt was gone.
struct ExitRecord {
  JobNumber job = 0;
  AttemptId attempt;
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  bool timed_out = false;  // its limit ended it
  Stopped stopped = Stopped::No;
  bool was_started = true;  // false: the program could not be started, `why` says why
  std::string why;
  std::string boot_id;           // of the boot whose clock the next two are
  std::int64_t begun_clock = 0;  // microseconds since boot; 0: never began
  std::int64_t ended_clock = 0;
  double cpu_seconds = 0;
  std::int64_t max_rss_kib = 0;
  bool out_of_memory = false;     // a process of it was killed for want of memory
  std::int64_t peak_kib = 0;      // of all its processes together; 0: nobody counted
  std::vector<StepView> steps{};  // found beside the record, not in it
};

/// Steps as their job keeps them, and where.
struct KeptSteps {
  std::string directory;
  std::vector<StepView> steps;
};

/// What became of an attempt, found after a restart. In this order of looking: process, record,
/// claim (a job that ends in between is then found by its record).
enum class Found : std::uint8_t {
  Alive,  // its shim runs: adopted, an event will tell its end
  Ended,  // its exit record is there
  Lost,   // claimed, but neither a shim nor a record: the power or the node went away
  Void,   // nobody had claimed it; now we have, so that nobody ever will
};
struct Finding {
  Found found{};
  std::optional<ExitRecord> exit = {};  // of Ended
  std::string why = {};                 // of Lost and Void, for people
  bool was_alive = false;  // of Lost and Void: its processes ran until they were ended just now
  /// Of Alive: which cores it was last bound to; nothing: those it was started with.
  std::optional<std::vector<std::int32_t>> cores = {};
};

enum class HostEventKind : std::uint8_t {
  Started,     // the program runs
  Ended,       // all processes gone, `exit` says how
  LaunchLost,  // the shim went away without a trace: look() tells what became of it
};
struct HostEvent {
  HostEventKind kind{};
  JobNumber job = 0;
  AttemptId attempt;
  std::int64_t pid = 0;
  ExitRecord exit;
};

class Host {
 public:
  virtual ~Host() = default;
  /// Makes the shim. Returns once it is under way; an error means that nothing was started and the
  /// attempt is void.
  [[nodiscard]] virtual Result<void> launch(const LaunchOrder& order) = 0;
  /// Warn: the attempt's warning signal, and after its grace a kill. Kill: at once.
  enum class Stop : std::uint8_t { Warn, Kill };
  virtual void stop(AttemptId attempt, Stop how, std::int64_t grace_seconds) = 0;
  virtual void suspend(AttemptId attempt) = 0;
  virtual void resume(AttemptId attempt) = 0;
  /// Any signal to all its processes.
  virtual void signal(AttemptId attempt, int number) = 0;
  /// To the processes that it was started with, not to what they have started.
  virtual void signal_shell(AttemptId attempt, int number) = 0;
  /// Binds all its processes to other cores.
  virtual void set_cores(AttemptId attempt, const std::vector<std::int32_t>& cores) = 0;
  /// All its processes run so much of the time, in thousandths; 1000: always.
  virtual void set_rate(AttemptId attempt, std::int32_t milli) = 0;
  /// Another time limit, in seconds since it began and at most kMaxLimitOfRunning; 0 = none.
  virtual void set_limit(AttemptId attempt, std::int64_t seconds) = 0;
  /// Starts a session beside its tasks, for the request of this number in its directory of steps.
  virtual void join(AttemptId, std::uint32_t) {}
  /// After a restart: what became of an attempt whose end is not in the journal. Alive ones are
  /// watched from now on. An error: nobody can say yet, the attempt may be alive; LaunchLost comes
  /// again when it is worth another look.
  [[nodiscard]] virtual Result<Finding> look(JobNumber job, AttemptId attempt) = 0;
  /// Of an attempt that runs, as it says itself; from any thread.
  [[nodiscard]] virtual KeptSteps steps(AttemptId) { return {}; }
  /// The end is in the journal: its files may go.
  virtual void forget(AttemptId attempt) = 0;
};

}  // namespace berth
