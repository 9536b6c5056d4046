#include "slurm/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::slurm {

namespace {

using Clock = std::chrono::steady_clock;

/// Its streams in place, nothing else of ours: no files, no signal settings; a group of its own.
class SpawnSettings {
 public:
  SpawnSettings(int in, int out, int error) {
    ::posix_spawn_file_actions_init(&actions);
    if (in >= 0) {
      ::posix_spawn_file_actions_adddup2(&actions, in, 0);
    } else {
      ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    }
    ::posix_spawn_file_actions_adddup2(&actions, out, 1);
    ::posix_spawn_file_actions_adddup2(&actions, error, 2);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    ::posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const auto is_dropped = [&](const std::string& begin) { return name.starts_with(begin); };
    const auto is_set = [&](const auto& pair) { return name == pair.first; };
    if (std::ranges::none_of(command.without, is_dropped) &&
        std::ranges::none_of(command.environment, is_set))
      entries.emplace_back(text);
  }
  for (const auto& pair : command.environment) entries.push_back(pair.first + '=' + pair.second);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// 0, or errno of why it could not be started.
int spawn(const Command& command, const SpawnSettings& settings, pid_t& pid) {
  std::vector<std::string> arguments = command.words;
  std::vector<std::string> environment = environment_of(command);
  return ::posix_spawnp(&pid, command.words.front().c_str(), &settings.actions,
                        &settings.attributes, pointers(arguments).data(),
                        pointers(environment).data());
}

/// False once there is nothing more to come.
bool read_some(Fd& from, std::string& to) {
  char part[65536];
  const ssize_t got = ::read(from.get(), part, sizeof part);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) {
    from.reset();
    return false;
  }
  to.append(part, static_cast<std::size_t>(got));
  return true;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

/// Reads both streams to their ends; or says why that was not waited for.
Ending collect(Fd& out, Fd& error, Outcome& outcome, const Limits& limits,
               Clock::time_point deadline) {
  while (out.is_open() || error.is_open()) {
    pollfd watched[2]{{out.get(), POLLIN, 0}, {error.get(), POLLIN, 0}};
    const int wait = milliseconds_until(deadline);
    if (Clock::now() >= deadline) return Ending::OutOfTime;
    if (::poll(watched, 2, wait) <= 0) continue;
    if (watched[0].revents != 0) read_some(out, outcome.out);
    if (watched[1].revents != 0) read_some(error, outcome.error);
    if (outcome.out.size() + outcome.error.size() > limits.output_bytes) return Ending::TooMuch;
  }
  return Ending::Exited;
}

/// Its exit, waited for until the deadline: it may have closed its streams and live on.
bool wait_for_exit(pid_t pid, int& status, Clock::time_point deadline) {
  for (;;) {
    const pid_t done = ::waitpid(pid, &status, WNOHANG);
    if (done == pid) return true;
    if (done < 0 && errno != EINTR) {
      status = 0;  // somebody else reaps our children: what it said is all there is
      return true;
    }
    if (Clock::now() >= deadline) return false;
    const timespec moment{0, 200'000};
    ::nanosleep(&moment, nullptr);
  }
}

void kill_group(pid_t pid) noexcept {
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // in case it has left the group
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Outcome run_command(const Command& command, const Limits& limits) {
  Outcome outcome;
  const auto deadline = Clock::now() + limits.time;
  int out_ends[2];
  int error_ends[2];
  if (::pipe2(out_ends, O_CLOEXEC) != 0) {
    outcome.code = errno;
    return outcome;
  }
  Fd out(out_ends[0]);
  Fd out_to(out_ends[1]);
  if (::pipe2(error_ends, O_CLOEXEC) != 0) {
    outcome.code = errno;
    return outcome;
  }
  Fd error(error_ends[0]);
  Fd error_to(error_ends[1]);
  pid_t pid = 0;
  outcome.code = spawn(command, SpawnSettings(-1, out_to.get(), error_to.get()), pid);
  if (outcome.code != 0) return outcome;
  out_to.reset();
  error_to.reset();

  outcome.ending = collect(out, error, outcome, limits, deadline);
  int status = 0;
  if (outcome.ending == Ending::Exited && !wait_for_exit(pid, status, deadline))
    outcome.ending = Ending::OutOfTime;
  if (outcome.ending != Ending::Exited) {
    kill_group(pid);
    return outcome;
  }
  if (WIFSIGNALED(status)) outcome.ending = Ending::Killed;
  outcome.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  stop();
  pid_ = std::exchange(other.pid_, 0);
  socket_ = std::move(other.socket_);
  error_ = std::move(other.error_);
  return *this;
}

Result<Child> Child::start(const Command& command) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_with_errno("socket", "make one");
  Child child;
  child.socket_.reset(ends[0]);
  const Fd theirs(ends[1]);
  int error_ends[2];
  if (::pipe2(error_ends, O_CLOEXEC) != 0) return fail_with_errno("pipe", "make one");
  child.error_.reset(error_ends[0]);
  const Fd error_to(error_ends[1]);
  ::fcntl(child.error_.get(), F_SETFL, O_NONBLOCK);
  errno = spawn(command, SpawnSettings(theirs.get(), theirs.get(), error_to.get()), child.pid_);
  if (errno != 0) {
    child.pid_ = 0;
    return fail_with_errno(command.words.front(), "start it");
  }
  return child;
}

std::string Child::complaints() {
  static constexpr std::size_t kMost = 65'536;
  std::string said;
  while (error_.is_open() && said.size() < kMost) {
    const std::size_t before = said.size();
    if (!read_some(error_, said) || said.size() == before) break;
  }
  return said;
}

void Child::stop() noexcept {
  if (pid_ > 0) kill_group(pid_);
  pid_ = 0;
  socket_.reset();
  error_.reset();
}

}  // namespace berth::slurm
