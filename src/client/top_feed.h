// Keeps what `berth top` shows up to date: asks every two seconds, and at once when the scheduler's
// events say that something happened. Threads of its own, so that the screen never waits.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/endpoint.h"
#include "client/scheduler.h"
#include "client/top_view.h"

namespace berth::client {

/// One round of questions; trouble in it if there was no answer.
[[nodiscard]] TopSnapshot ask_for_snapshot(Scheduler& scheduler, const std::string& user);

class TopFeed {
 public:
  /// `changed` is called from another thread.
  TopFeed(const Endpoint& endpoint, std::string user, std::function<void()> changed);
  ~TopFeed();
  TopFeed(const TopFeed&) = delete;
  TopFeed& operator=(const TopFeed&) = delete;

  [[nodiscard]] TopSnapshot latest() const;
  /// Carries it out behind the screen's back; what came of it is in message().
  void act(JobAction action);
  [[nodiscard]] std::string message() const;

 private:
  void ask();
  void listen();

  Endpoint endpoint_;
  std::string user_;
  std::function<void()> changed_;

  mutable std::mutex mutex_;
  std::condition_variable wanted_;
  TopSnapshot latest_;
  std::string message_;
  std::deque<JobAction> actions_;
  std::unique_ptr<HttpStream> stream_;  // of the listener; interrupted to end it
  bool is_stale_ = true;
  bool is_over_ = false;

  std::thread asker_, listener_;
};

}  // namespace berth::client
