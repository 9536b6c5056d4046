// A LocalHost in a directory of its own, its events kept for tests that wait for them. At the end
// every attempt that still runs is killed and waited for: a test leaves no process behind.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/local_host.h"

namespace berth::host_test {

inline constexpr std::chrono::seconds kPatience{30};

/// Looks again and again until it is so; false after 30 s.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);
[[nodiscard]] std::string content(const std::string& path);
[[nodiscard]] bool exists(const std::string& path);
/// The number in a file, once there is one.
[[nodiscard]] pid_t pid_in(const std::string& path);
[[nodiscard]] bool is_running(pid_t pid);
/// Living shims of this run directory.
[[nodiscard]] std::vector<pid_t> shims_of(const std::string& run_dir);

class HostTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// A new life of the scheduler: the host before it is gone, shims live on.
  void open(std::vector<std::string> cgroup_roots = {});
  void close() { host_.reset(); }
  [[nodiscard]] LocalHost& host() { return *host_; }

  [[nodiscard]] std::string file(const std::string& name) const { return root_ + "/" + name; }
  [[nodiscard]] std::string run_file(const std::string& name) const {
    return root_ + "/run/" + name;
  }
  /// A script as the present user, its output in "out", its grace short.
  [[nodiscard]] LaunchOrder script(const std::string& text, std::uint64_t counter = 1) const;
  [[nodiscard]] LaunchOrder command(std::vector<std::string> words,
                                    std::uint64_t counter = 1) const;

  /// Waits for it; fails the test if it does not come.
  HostEvent wait_for(HostEventKind kind, AttemptId attempt = {1, 1});
  [[nodiscard]] std::size_t count(HostEventKind kind);
  /// Launches and waits for the end.
  ExitRecord run(const LaunchOrder& order);

  std::string root_;

 private:
  void note(HostEvent event);

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<HostEvent> events_;
  std::unique_ptr<LocalHost> host_;
};

}  // namespace berth::host_test
