// The terminal of `berth top`: alternate screen, raw keys, and one poll() for keys, signals and
// news. Signal handlers only write a byte into a pipe; everything else happens in the loop.

#include "client/screen.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace berth::client {

namespace {

int g_signals[2] = {-1, -1};  // a handler can only write; the loop reads
constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};

// errno belongs to whatever was interrupted.
void on_signal(int signal) {
  const int error = errno;
  const char byte = static_cast<char>(signal);
  [[maybe_unused]] const auto written = ::write(g_signals[1], &byte, 1);
  errno = error;
}

bool make_pipe(int (&ends)[2]) { return ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0; }

// A terminal may take a frame in pieces.
void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// A terminal that does not know its size is the usual one.
winsize size_now() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    size.ws_col = 80;
    size.ws_row = 24;
  }
  return size;
}

}  // namespace

Result<std::unique_ptr<Screen>> Screen::open() {
  std::unique_ptr<Screen> screen(new Screen);
  if (::tcgetattr(STDIN_FILENO, &screen->before_) != 0)
    return fail(fmt::format("no terminal: {}", std::strerror(errno)));
  if (!make_pipe(screen->wake_) || !make_pipe(g_signals))
    return fail(fmt::format("no pipe: {}", std::strerror(errno)));
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
  screen->enter();
  return screen;
}

Screen::~Screen() {
  leave();
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  for (int* end : {&wake_[0], &wake_[1], &g_signals[0], &g_signals[1]}) {
    if (*end >= 0) ::close(*end);
    *end = -1;
  }
}

void Screen::enter() {
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  put("\x1b[?1049h\x1b[?25l\x1b[2J");
  last_.clear();
  is_inside_ = true;
}

void Screen::leave() {
  if (!is_inside_) return;
  put("\x1b[0m\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  is_inside_ = false;
}

void Screen::draw(const std::vector<std::string>& lines) {
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) frame += "\r\n";
    frame += lines[i] + "\x1b[K";
  }
  frame += "\x1b[J";
  // An unchanged screen costs nothing and does not flicker, also over a slow line.
  if (frame == last_) return;
  put(frame);
  last_ = std::move(frame);
}

std::optional<Input> Screen::from_signals() {
  char signal = 0;
  while (::read(g_signals[0], &signal, 1) == 1) {
    if (signal == SIGWINCH) {
      last_.clear();
      return Input{Input::Kind::Resized};
    }
    if (signal == SIGTSTP) {
      leave();
      ::raise(SIGSTOP);  // until somebody continues us
      enter();
      return Input{Input::Kind::Resized};
    }
    if (signal != SIGCONT) return Input{Input::Kind::Ended};
  }
  return std::nullopt;
}

// Keys beyond ASCII come as escape sequences, of which several may arrive in one read.
std::optional<Input> Screen::key_from_bytes() {
  if (bytes_.empty()) return std::nullopt;
  const auto key = [&](std::size_t used, Key which, char character = 0) {
    bytes_.erase(0, used);
    return Input{Input::Kind::Key, which, character};
  };
  for (const auto& [sequence, which] : {std::pair{std::string_view("\x1b[A"), Key::Up},
                                        {"\x1bOA", Key::Up},
                                        {"\x1b[B", Key::Down},
                                        {"\x1bOB", Key::Down},
                                        {"\x1b[5~", Key::PageUp},
                                        {"\x1b[6~", Key::PageDown}})
    if (bytes_.starts_with(sequence)) return key(sequence.size(), which);
  if (bytes_.starts_with("\x1b[") || bytes_.starts_with("\x1bO")) {  // some other key
    std::size_t end = 2;
    while (end < bytes_.size() && (bytes_[end] < '@' || bytes_[end] > '~')) ++end;
    return key(std::min(end + 1, bytes_.size()), Key::None);
  }
  const char c = bytes_.front();
  if (c == '\x1b') return key(1, Key::Escape);
  if (c == '\r' || c == '\n') return key(1, Key::Enter);
  if (c == '\x7f' || c == '\b') return key(1, Key::Backspace);
  return key(1, Key::Character, c);
}

Input Screen::wait(std::chrono::milliseconds timeout) {
  if (auto key = key_from_bytes()) return *key;
  std::array<pollfd, 3> sources{
      {{STDIN_FILENO, POLLIN, 0}, {wake_[0], POLLIN, 0}, {g_signals[0], POLLIN, 0}}};
  ::poll(sources.data(), sources.size(), static_cast<int>(timeout.count()));
  if (auto input = from_signals()) return *input;
  if ((sources[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
    std::array<char, 256> block;
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got == 0 && (sources[0].revents & POLLHUP) != 0) return Input{Input::Kind::Ended};
    if (got < 0 && errno != EINTR && errno != EAGAIN) return Input{Input::Kind::Ended};
    if (got > 0) bytes_.append(block.data(), static_cast<std::size_t>(got));
    if (auto key = key_from_bytes()) return *key;
  }
  if ((sources[1].revents & POLLIN) != 0) {
    std::array<char, 256> block;
    while (::read(wake_[0], block.data(), block.size()) > 0) {
    }
    return Input{Input::Kind::Woken};
  }
  return {};
}

void Screen::wake() const noexcept {
  [[maybe_unused]] const auto written = ::write(wake_[1], "", 1);
}
int Screen::width() const { return size_now().ws_col; }
int Screen::height() const { return size_now().ws_row; }

}  // namespace berth::client
