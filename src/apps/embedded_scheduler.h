// A scheduler of one's own for a while: `berth serve` as a child process, with state, socket and
// job outputs in a private temporary directory and a free loopback port. Both are gone when this
// object is, and the child does not outlive us.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth {

class EmbeddedScheduler {
 public:
  /// `arguments` of `berth serve`, beside those that say where things are. Returns when it answers.
  [[nodiscard]] static Result<std::unique_ptr<EmbeddedScheduler>> start(
      const std::vector<std::string>& arguments);
  ~EmbeddedScheduler();
  EmbeddedScheduler(const EmbeddedScheduler&) = delete;
  EmbeddedScheduler& operator=(const EmbeddedScheduler&) = delete;

  [[nodiscard]] std::string socket() const { return directory_ + "/berth.sock"; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }

 private:
  explicit EmbeddedScheduler(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] Result<void> launch(const std::vector<std::string>& arguments);
  [[nodiscard]] Result<void> wait_until_ready();
  [[nodiscard]] std::string log_path() const { return directory_ + "/serve.log"; }

  std::string directory_;
  pid_t child_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace berth
