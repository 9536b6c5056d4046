// Turns of a SlurmHost, once a second and soon after something is wanted, in a thread of their own:
// a slurmctld that takes its time keeps no scheduler waiting.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace berth {

class PollThread {
 public:
  PollThread(std::function<void()> turn, std::chrono::milliseconds every);
  ~PollThread();
  PollThread(const PollThread&) = delete;
  PollThread& operator=(const PollThread&) = delete;
  /// From any thread.
  void wake();

 private:
  void work();
  const std::function<void()> turn_;
  const std::chrono::milliseconds every_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_woken_ = false, is_stopping_ = false;
  std::thread thread_;  // the last: it uses everything above
};

}  // namespace berth
