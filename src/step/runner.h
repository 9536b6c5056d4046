// The tasks of a step as processes: started, fed, listened to, signalled and waited for, in one
// thread that sleeps in poll. They die with this process; what they leave behind is ended with the
// step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"
#include "model/step.h"
#include "step/plan.h"
#include "step/streams.h"

namespace berth {

struct RunSettings {
  std::string step;     // "12.0", for messages
  std::string node;     // the same
  std::string workdir;  // empty: ours
  // Paths, with %t for the rank; empty: srun's own streams.
  std::string input, output, error;
  std::optional<std::int32_t> input_rank, output_rank;  // only that task has it; -1: none
  bool appends = false;
  bool labels = false;
  bool has_terminal = false;  // task 0 gets our streams themselves
  bool kills_on_bad_exit = false;
  bool quits_on_interrupt = false;
  std::int64_t wait_seconds = 0;                     // after the first has ended; 0: for ever
  std::int64_t limit_seconds = 0;                    // 0: none
  std::int64_t shim = 0;                             // whatever it signals, it signals to everybody
  std::function<void(const std::string& line)> say;  // "srun: …" for people
};

struct StepEnd {
  StepState state = StepState::Completed;
  std::int32_t exit_code = 0;  // of the worst task
  std::int32_t signal = 0;
  int status = 0;  // what srun leaves with
  double cpu_seconds = 0;
  std::int64_t max_rss_kib = 0;
};

class StepRunner {
 public:
  StepRunner(std::vector<TaskPlan> tasks, RunSettings settings);
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  /// Returns when the last task is gone and nothing of them is left.
  [[nodiscard]] Result<StepEnd> run();

 private:
  struct Task {
    pid_t pid = 0;
    bool is_over = false;
    int status = 0;
  };

  [[nodiscard]] Result<void> start_all();
  [[nodiscard]] Result<void> start(std::size_t rank, std::vector<Fd>& inputs);
  void pass_on(int timeout);
  void read_signals();
  void obey(int number, std::int64_t sender);
  void interrupt();
  void signal_tasks(int number);
  void begin_end(std::string why, int number);
  void reap();
  void tell_ends(const std::vector<std::size_t>& ranks);
  void watch_clock();
  void end_leftovers();
  [[nodiscard]] int until_next() const;
  [[nodiscard]] StepEnd judged() const;

  std::vector<TaskPlan> plans_;
  RunSettings settings_;
  std::vector<Task> tasks_;
  std::size_t open_tasks_ = 0;
  Fd signals_;
  std::vector<Fd> files_;  // where output goes that is not ours
  std::vector<OutputRelay> relays_;
  std::unique_ptr<InputFan> input_;
  StepEnd end_;
  bool is_cancelled_ = false, is_timed_out_ = false;
  std::int64_t begun_ = 0, first_end_ = 0, kill_at_ = 0, interrupted_ = 0;
  int interrupts_ = 0;
};

}  // namespace berth
