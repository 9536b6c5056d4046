// The progress bar of one or several runs at once: jobs that are over, events per second, time
// left. On a terminal only, at most ten times a second, erased at the end. Any thread may report; a
// run that is too short to report shows nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "run/run.h"

namespace berth {

class ProgressBar {
 public:
  /// `runs` runs of `jobs` jobs each; not `enabled`: every call does nothing.
  ProgressBar(std::size_t runs, std::size_t jobs, bool enabled);
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// What to hand to the run of that number; empty if the bar is off.
  [[nodiscard]] ProgressFn of_run(std::size_t run);
  void finished(std::size_t run);
  void erase();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  [[nodiscard]] std::string line(double elapsed) const;

  std::size_t jobs_;
  bool enabled_;
  bool colour_;
  Clock::time_point began_;
  std::mutex mutex_;               // guards what follows
  std::vector<std::size_t> over_;  // jobs, by run
  std::vector<std::uint64_t> events_;
  std::size_t finished_ = 0;
  Clock::time_point drawn_;
  bool visible_ = false;
};

}  // namespace berth
