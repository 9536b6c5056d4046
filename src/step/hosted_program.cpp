#include "step/hosted_program.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step/local_socket.h"
#include "step/process_use.h"
#include "step/terminal.h"

namespace berth::step {

namespace {

constexpr int kNotRunnable = 126;
constexpr int kNotFound = 127;

struct Pipe {
  Fd from{}, to{};
};
Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_by_errno("make a pipe");
  return Pipe{.from = Fd(ends[0]), .to = Fd(ends[1])};
}

struct Streams {
  int in = -1, out = -1, error = -1;
};

/// In the child, which has a session of its own: the terminal becomes its controlling one.
Streams open_terminal(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR);
  if (fd < 0) return {};
  ::ioctl(fd, TIOCSCTTY, 0);
  return {.in = fd, .out = fd, .error = fd};
}

void reset_signals() {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &plain, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(const ProgramOrder& order, Streams streams, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotRunnable);
  for (const auto& [fd, at] : {std::pair{streams.in, 0}, {streams.out, 1}, {streams.error, 2}})
    if (fd < 0 || ::dup2(fd, at) < 0) ::_exit(kNotRunnable);
  if (streams.in > 2) ::close(streams.in);
  if (order.on_terminal && !order.term.empty()) ::setenv("TERM", order.term.c_str(), 1);
  reset_signals();
  std::vector<std::string> words = order.words;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(order.file.c_str(), arguments.data());
  const int reason = errno;
  std::fprintf(stderr, "berth: %s: %s\n", order.words.front().c_str(), std::strerror(reason));
  ::_exit(reason == ENOENT ? kNotFound : kNotRunnable);
}

}  // namespace

Result<HostedProgram> HostedProgram::start(const ProgramOrder& order) {
  HostedProgram program;
  program.on_terminal_ = order.on_terminal;
  PseudoTerminal terminal;
  Pipe in, out, error;
  if (order.on_terminal) {
    BERTH_TRY(terminal, open_pseudo_terminal(order.size));
  } else {
    BERTH_TRY(in, make_pipe());
    BERTH_TRY(out, make_pipe());
    BERTH_TRY(error, make_pipe());
  }
  const pid_t self = ::getpid();
  program.pid_ = ::fork();
  if (program.pid_ < 0) return fail_by_errno("make a process");
  if (program.pid_ == 0) {
    ::setsid();
    become(order,
           order.on_terminal
               ? open_terminal(terminal.path)
               : Streams{.in = in.from.get(), .out = out.to.get(), .error = error.to.get()},
           self);
  }
  program.in_ = std::move(in.to);
  program.out_ = order.on_terminal ? std::move(terminal.ours) : std::move(out.from);
  program.error_ = std::move(error.from);
  for (const int fd : {program.in_.get(), program.out_.get(), program.error_.get()})
    if (fd >= 0) make_nonblocking(fd);
  return program;
}

void HostedProgram::close_input() {
  if (!on_terminal_) return in_.reset();
  // A terminal has no end of its input, but a key that says so.
  const char end = 4;
  if (out_.is_open()) std::ignore = ::write(out_.get(), &end, 1);
}

void HostedProgram::resize(WindowSize size) const {
  if (on_terminal_ && out_.is_open()) set_window_size(out_.get(), size);
}

void HostedProgram::signal(int number) const {
  if (is_over_) return;
  const pid_t front = on_terminal_ && out_.is_open() ? ::tcgetpgrp(out_.get()) : pid_;
  ::kill(-(front > 1 ? front : pid_), number);
}

void HostedProgram::hang_up() const {
  signal_session(pid_, SIGHUP);
  signal_session(pid_, SIGCONT);  // one that is stopped could not hear it
}

void HostedProgram::kill_all() const {
  signal_session(pid_, SIGKILL);
  if (!is_over_) ::kill(pid_, SIGKILL);
}

std::optional<int> HostedProgram::try_reap() {
  int status = 0;
  if (is_over_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  is_over_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace berth::step
