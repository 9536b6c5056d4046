#include "exec/shim/private_tmp.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/remove_tree.h"
#include "exec/shim/identity.h"

namespace berth {

namespace {

constexpr int kPatience = 3000;  // looks, 10 ms apart

Result<void> become_owner(const LaunchOrder& order) {
  return become_user({.uid = order.uid, .gid = order.gid, .groups = order.groups});
}

/// In the child, as its user: the place may belong to others, and must not obey our rights.
void make_and_tell(const LaunchOrder& order, int to) {
  if (!become_owner(order)) return;
  std::string path = order.tmp_root + "/berth-" + std::to_string(order.job) + ".XXXXXX";
  if (::mkdtemp(path.data()) != nullptr) static_cast<void>(write_all(to, path));
}

}  // namespace

std::string make_private_tmp(const RunDir& directory, const LaunchOrder& order) {
  int ends[2];
  if (order.tmp_root.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return {};
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    make_and_tell(order, to.get());
    ::_exit(0);
  }
  to.reset();
  std::string path;
  char part[256];
  for (ssize_t got = 0; (got = ::read(from.get(), part, sizeof part)) != 0;) {
    if (got > 0) path.append(part, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  if (child > 0) ::waitpid(child, nullptr, 0);
  if (!path.empty()) static_cast<void>(put_file(directory.tmp(order.attempt), path));
  return path;
}

void remove_private_tmp(const RunDir& directory, const LaunchOrder& order,
                        const std::string& path) {
  if (path.empty()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    if (become_owner(order)) remove_tree(path);
    ::_exit(0);
  }
  const timespec moment{0, 10'000'000};
  for (int look = 0; child > 0 && ::waitpid(child, nullptr, WNOHANG) == 0; ++look) {
    if (look == kPatience) ::kill(child, SIGKILL);
    if (look > kPatience + 100) break;  // it waits in the kernel
    ::nanosleep(&moment, nullptr);
  }
  ::unlink(directory.tmp(order.attempt).c_str());
}

}  // namespace berth
