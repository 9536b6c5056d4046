#include "exec/shim/cleanup.h"

#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/shim/identity.h"
#include "exec/shim/program.h"

namespace berth {

namespace {
constexpr int kPatience = 3000;  // looks, 10 ms apart
}

std::vector<std::string> cleanup_environment(const LaunchOrder& order) {
  std::vector<std::string> kept;
  if (order.cleanup.empty()) return kept;
  for (const auto& [name, value] : order.env)
    if (name == "PATH" || name == "HOME" || name == "USER" || name.starts_with("XDG_"))
      kept.push_back(name + "=" + value);
  return kept;
}

void run_cleanup(const LaunchOrder& order, const std::vector<std::string>& environment) {
  if (order.cleanup.empty()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {0, 1, 2}) ::dup2(nothing, stream);
    LaunchOrder command;
    command.command = order.cleanup;
    for (const std::string& entry : environment)
      if (entry.starts_with("PATH=")) command.env.emplace_back("PATH", entry.substr(5));
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (become_user({.uid = order.uid, .gid = order.gid, .groups = order.groups}) &&
        ::chdir("/") == 0)
      static_cast<void>(run_program(command, {}, environment));
    ::_exit(127);
  }
  const timespec moment{0, 10'000'000};
  for (int look = 0; child > 0 && ::waitpid(child, nullptr, WNOHANG) == 0; ++look) {
    if (look == kPatience) ::kill(-child, SIGKILL);
    if (look > kPatience + 100) return;  // it waits in the kernel
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace berth
