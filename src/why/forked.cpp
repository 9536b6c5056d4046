#include "why/forked.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace berth {

namespace {

[[noreturn]] void answer(int pipe, const std::function<std::string()>& work) {
  std::string text;
  try {
    text = work();
  } catch (const std::exception&) {  // no answer; whoever asked is told so
    _exit(1);
  }
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = write(pipe, text.data() + sent, text.size() - sent);
    if (count <= 0) _exit(1);
    sent += static_cast<std::size_t>(count);
  }
  _exit(0);
}

}  // namespace

std::optional<std::string> in_a_copy(const std::function<std::string()>& work,
                                     std::chrono::milliseconds patience) {
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // It has a copy of every lock and socket of ours, and nobody to answer to without us.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) _exit(1);
    answer(pipe[1], work);
  }
  close(pipe[1]);
  std::optional<std::string> text;
  if (child > 0) {
    text.emplace();
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      pollfd wait{.fd = pipe[0], .events = POLLIN, .revents = 0};
      if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) <= 0) {
        text.reset();
        break;
      }
      std::array<char, 65536> buffer{};
      const ssize_t count = read(pipe[0], buffer.data(), buffer.size());
      if (count <= 0) break;
      text->append(buffer.data(), static_cast<std::size_t>(count));
    }
    if (!text) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) text.reset();
  }
  close(pipe[0]);
  return text;
}

}  // namespace berth
