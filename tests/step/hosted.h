// A session in a process of its own, and clients that speak to it: by frames, or from a terminal.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/fd.h"
#include "step/attach_protocol.h"
#include "step/attachment.h"
#include "step/session.h"

namespace berth::step {

/// Asks until it is so, or half a minute is over.
bool becomes_true(const std::function<bool()>& question);

class HostProcess {
 public:
  /// In a new directory; the options' directory and, if it is empty, the file are filled in.
  explicit HostProcess(SessionOptions options, const std::string& below = "");
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] Fd connect() const;
  [[nodiscard]] std::string reason() const;
  void kill(int number) const;
  /// As a shell tells it; nothing: it did not end.
  std::optional<int> exit_code();

 private:
  std::string root_, directory_;
  pid_t pid_ = 0;
  std::optional<int> code_;
};

/// Says exactly what it is told, and collects what comes.
class FrameClient {
 public:
  explicit FrameClient(Fd socket, const Hello& hello = {});
  void say(FrameKind kind, std::string_view payload = {});
  void send_raw(std::string_view bytes);
  void go() { socket_.reset(); }

  /// Until it holds or the host is gone.
  bool hear_until(const std::function<bool()>& enough);
  bool hears_output(const std::string& text) {
    return hear_until([&] { return output.find(text) != std::string::npos; });
  }
  std::optional<int> hears_exit() {
    hear_until([&] { return code.has_value(); });
    return code;
  }
  /// The host has hung up on us.
  bool is_dropped() {
    hear_until([] { return false; });
    return is_gone_;
  }

  std::string output{}, error{}, notices{}, refusal{};
  std::optional<int> code{};
  bool is_welcome = false;
  std::size_t credit = 0;

 private:
  void take(const Frame& frame);

  Fd socket_;
  FrameReader reader_;
  bool is_gone_ = false;
};

/// A process on a terminal of its own, played from here.
class TerminalClient {
 public:
  /// `body` runs on it; its answer is the exit code.
  TerminalClient(WindowSize size, const std::function<int()>& body);
  ~TerminalClient();
  TerminalClient(const TerminalClient&) = delete;
  TerminalClient& operator=(const TerminalClient&) = delete;

  void type(std::string_view keys) const;
  void resize(WindowSize size) const;
  void kill(int number) const;
  /// Its window is closed, or its ssh breaks.
  void close() { terminal_.reset(); }
  /// Everything it has shown so far comes to hold this.
  bool shows(const std::string& text);
  [[nodiscard]] const std::string& screen() const noexcept { return screen_; }
  /// Whether its keys are bytes.
  [[nodiscard]] bool is_raw() const;
  std::optional<int> exit_code();
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  void read_screen();

  pid_t pid_ = 0;
  Fd terminal_;
  std::string screen_;
  std::optional<int> code_;
};

}  // namespace berth::step
