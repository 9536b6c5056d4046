#include "apps/terminal.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include <fmt/format.h>

namespace berth {

Exit complain(Exit code, const Error& error) {
  std::string all;
  for (const std::string& message : error.messages) all += fmt::format("berth: {}\n", message);
  std::fwrite(all.data(), 1, all.size(), stderr);
  return code;
}

Exit complain(Exit code, std::string_view message) {
  return complain(code, Error{std::string(message)});
}

void print_note(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Exit write_stdout(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return Exit::Success;
  if (errno == EPIPE) return Exit::Success;
  return complain(Exit::Failure,
                  fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

bool stderr_is_terminal() noexcept {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

bool wants_colour() noexcept {
  const char* no_colour = std::getenv("NO_COLOR");
  return stderr_is_terminal() && (no_colour == nullptr || *no_colour == '\0');
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace berth
