#include "client/console.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace berth::client {

Console::Console(std::string program) : program_(std::move(program)) {
  const char* term = std::getenv("TERM");
  const char* no_colour = std::getenv("NO_COLOR");
  is_terminal_ = ::isatty(STDOUT_FILENO) == 1;
  has_colour_ = is_terminal_ && (no_colour == nullptr || *no_colour == '\0') && term != nullptr &&
                std::strcmp(term, "dumb") != 0;
}

bool Console::put(std::string_view text) {
  // After `| head` has left there is nobody to write to; callers stop asking the scheduler.
  if (is_gone_ || !write_error_.empty()) return false;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return true;
  // A reader that closed the pipe is no fault of ours: done() reports success.
  if (errno == EPIPE)
    is_gone_ = true;
  else
    write_error_ = std::strerror(errno);
  return false;
}

// Whatever a server or a file says goes through harmless(): it must not steer the terminal.
void Console::note(std::string_view line) const {
  const std::string text = fmt::format("{}: {}\n", program_, harmless(line));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int Console::complain(int code, const Error& error) const {
  for (const std::string& message : error.messages) note(message);
  return code;
}

int Console::complain(int code, std::string_view message) const {
  note(message);
  return code;
}

int Console::done() const {
  if (write_error_.empty()) return kSuccess;
  return complain(kFailure, fmt::format("cannot write to standard output: {}", write_error_));
}

int Console::width() const {
  winsize size{};
  if (!is_terminal_ || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace berth::client
