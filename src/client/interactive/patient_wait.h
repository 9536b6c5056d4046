// Waiting for a job to start, at a terminal: says why it waits whenever that changes, and hears
// Ctrl-C between two questions.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

#include "client/commands.h"

namespace berth::client {

/// SIGINT, SIGTERM and SIGHUP, asked for instead of suffered, while this lives.
class HeardInterrupts {
 public:
  HeardInterrupts();
  ~HeardInterrupts();
  HeardInterrupts(const HeardInterrupts&) = delete;
  HeardInterrupts& operator=(const HeardInterrupts&) = delete;
  HeardInterrupts(HeardInterrupts&&) = delete;
  HeardInterrupts& operator=(HeardInterrupts&&) = delete;

  /// Sleeps for so long, or until one comes: its number.
  [[nodiscard]] std::optional<int> sleep(std::chrono::milliseconds time) const;

 private:
  sigset_t heard_{}, before_{};
};

struct StartWait {
  bool is_quiet = false;
  std::optional<std::chrono::seconds> at_most{};  // --immediate
};
struct Started {
  enum class Kind : std::uint8_t { Runs, Over, Interrupted, TooLate };
  Kind kind = Kind::Runs;
  JobRow job{};
  int signal = 0;  // of Interrupted
};
/// A scheduler that restarts meanwhile is waited for.
[[nodiscard]] Result<Started> wait_for_start(Scheduler& scheduler, JobNumber job,
                                             const StartWait& how, const Console& console);

/// Gives the job up; what goes wrong is told.
void give_up(Scheduler& scheduler, JobNumber job, const std::string& why, const Console& console);

/// The job once it is over; nothing if it is not within this time.
[[nodiscard]] std::optional<JobRow> wait_for_end(Scheduler& scheduler, JobNumber job,
                                                 std::chrono::milliseconds at_most);

}  // namespace berth::client
