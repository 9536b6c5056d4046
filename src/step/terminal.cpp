#include "step/terminal.h"

#include <array>
#include <cstdlib>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "step/local_socket.h"

namespace berth::step {

WindowSize window_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return {};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

void set_window_size(int fd, WindowSize size) {
  if (size.rows == 0 || size.columns == 0) return;
  winsize wanted{};
  wanted.ws_row = size.rows;
  wanted.ws_col = size.columns;
  ::ioctl(fd, TIOCSWINSZ, &wanted);
}

RawTerminal::RawTerminal(int fd) noexcept : fd_(fd) {
  is_terminal_ = ::tcgetattr(fd, &before_) == 0;
  enter();
}

void RawTerminal::enter() noexcept {
  if (!is_terminal_) return;
  termios raw = before_;
  ::cfmakeraw(&raw);
  is_raw_ = ::tcsetattr(fd_, TCSANOW, &raw) == 0;
}

void RawTerminal::restore() noexcept {
  if (!is_raw_) return;
  // Not after the output has drained: one that nobody reads would keep us here.
  ::tcsetattr(fd_, TCSANOW, &before_);
  is_raw_ = false;
}

Result<PseudoTerminal> open_pseudo_terminal(WindowSize size) {
  PseudoTerminal made;
  made.ours.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> path{};
  if (!made.ours.is_open() || ::grantpt(made.ours.get()) != 0 || ::unlockpt(made.ours.get()) != 0 ||
      ::ptsname_r(made.ours.get(), path.data(), path.size()) != 0)
    return fail_by_errno("make a pseudo-terminal");
  made.path = path.data();
  set_window_size(made.ours.get(), size);
  make_nonblocking(made.ours.get());
  return made;
}

}  // namespace berth::step
