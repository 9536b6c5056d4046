// The program of a session: a process in a session of its own, on a pseudo-terminal or between
// pipes. It dies with us; what it has started is hung up and then killed when the session ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"
#include "step/attach_protocol.h"

namespace berth::step {

struct ProgramOrder {
  std::string file;                // looked for in PATH if it has no slash
  std::vector<std::string> words;  // its argv
  bool on_terminal = false;
  WindowSize size{};
  std::string term{};  // its TERM on a terminal; empty: as it is
};

class HostedProgram {
 public:
  [[nodiscard]] static Result<HostedProgram> start(const ProgramOrder& order);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Non-blocking, each its own; -1 where it is closed. On a terminal there is no error stream.
  [[nodiscard]] int input() const noexcept { return on_terminal_ ? out_.get() : in_.get(); }
  [[nodiscard]] int output() const noexcept { return out_.get(); }
  [[nodiscard]] int error() const noexcept { return error_.get(); }
  void close_input();
  void close_output() {
    if (!on_terminal_) out_.reset();
  }
  void close_error() { error_.reset(); }
  void output_ended() { out_.reset(); }

  void resize(WindowSize size) const;
  /// To its processes in the foreground, as a key of the terminal would; without one, to its group.
  void signal(int number) const;
  /// All of its session are told that nobody is there any more.
  void hang_up() const;
  void kill_all() const;

  /// The exit code as a shell tells it, once it is over.
  [[nodiscard]] std::optional<int> try_reap();

 private:
  HostedProgram() = default;

  pid_t pid_ = 0;
  bool on_terminal_ = false;
  bool is_over_ = false;
  Fd in_, out_, error_;  // on a terminal out_ is our end of it
};

}  // namespace berth::step
