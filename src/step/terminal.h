// Terminals: ours while its keys go elsewhere, and pseudo-terminals for programs.
#pragma once

#include <string>

#include <termios.h>

#include "base/fd.h"
#include "base/result.h"
#include "step/attach_protocol.h"

namespace berth::step {

/// Zeros if it is no terminal.
[[nodiscard]] WindowSize window_size(int fd);
/// The kernel tells the programs on it.
void set_window_size(int fd, WindowSize size);

/// A terminal whose keys are bytes: nothing is echoed, no key makes a signal. As it was before when
/// this goes.
class RawTerminal {
 public:
  /// Nothing happens if `fd` is no terminal.
  explicit RawTerminal(int fd) noexcept;
  ~RawTerminal() { restore(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  RawTerminal(RawTerminal&&) = delete;
  RawTerminal& operator=(RawTerminal&&) = delete;

  [[nodiscard]] bool is_raw() const noexcept { return is_raw_; }
  /// Again, after somebody else had it (a shell that stopped us and let us go on).
  void enter() noexcept;
  void restore() noexcept;

 private:
  int fd_;
  bool is_terminal_ = false;
  bool is_raw_ = false;
  termios before_{};
};

/// A new pseudo-terminal: our end, and the path of the other.
struct PseudoTerminal {
  Fd ours{};
  std::string path;
};
[[nodiscard]] Result<PseudoTerminal> open_pseudo_terminal(WindowSize size);

}  // namespace berth::step
