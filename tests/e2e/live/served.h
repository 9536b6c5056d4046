// A real `berth serve` for a test: state and socket in a temporary folder, a free loopback port,
// four devices. Ended with the object; jobs that still run are cancelled first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "e2e/cli/program.h"

namespace berth::test {

class Served {
 public:
  explicit Served(const std::vector<std::string>& arguments = {});
  ~Served();
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  /// 0: it did not come up, and the test has failed.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const TempFolder& folder() const noexcept { return folder_; }
  /// `berth ARGUMENTS` against it.
  [[nodiscard]] Ran run(const std::string& arguments) const;
  /// SIGKILL, and the same again after a while.
  void kill();
  void start();

 private:
  TempFolder folder_;
  std::vector<std::string> words_;
  int child_ = -1;
  std::uint16_t port_ = 0;
};

/// Asks until the answer satisfies; false after the deadline.
template <class Question>
[[nodiscard]] bool eventually(Question question, int seconds = 60);

}  // namespace berth::test

#include <chrono>
#include <thread>

template <class Question>
bool berth::test::eventually(Question question, int seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < deadline) {
    if (question()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}
