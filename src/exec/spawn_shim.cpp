#include "exec/spawn_shim.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/order_file.h"
#include "exec/shim_protocol.h"

namespace berth {

namespace {

/// Nothing of ours goes along but the pipe: no files, no signal settings.
class SpawnSettings {
 public:
  explicit SpawnSettings(int pipe) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe, kShimPipe);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&actions, 0, 1);
    ::posix_spawn_file_actions_adddup2(&actions, 0, 2);
    ::posix_spawn_file_actions_addclosefrom_np(&actions, kShimPipe + 1);
    ::posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes, &signals);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
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

/// Crash points reach into the shim; nothing else does.
std::vector<char*> passed_on() {
  std::vector<char*> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "BERTH_CRASH_", 12) == 0) entries.push_back(*entry);
  entries.push_back(nullptr);
  return entries;
}

}  // namespace

Result<Fd> spawn_shim(const std::string& program, const RunDir& directory, AttemptId attempt) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_with_errno("pipe", "make one");
  Fd from(ends[0]);
  const Fd to(ends[1]);
  const SpawnSettings settings(to.get());
  std::string words[] = {program, directory.path(), attempt_name(attempt)};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t first = 0;
  errno = ::posix_spawn(&first, program.c_str(), &settings.actions, &settings.attributes, arguments,
                        passed_on().data());
  if (errno != 0) return fail_with_errno(program, "start the shim");
  // It goes as soon as it has made the process that stays.
  int status = 0;
  while (::waitpid(first, &status, 0) < 0)
    if (errno != EINTR) return from;  // somebody else reaps our children: trust the pipe
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(program + ": the shim did not start");
  return from;
}

std::string own_program() {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  std::string path(self, length > 0 ? static_cast<std::size_t>(length) : 0);
  constexpr std::string_view kDeleted = " (deleted)";  // a newer one has its name by now
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

Result<std::string> find_shim() {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return fail_with_errno("/proc/self/exe", "read it");
  std::string folder(self, static_cast<std::size_t>(length));
  folder.resize(folder.rfind('/'));
  for (const char* place : {"/berth-shim", "/../libexec/berth/berth-shim"}) {
    std::string path = folder + place;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return fail(folder + "/berth-shim: not found (it is installed beside berth)");
}

}  // namespace berth
