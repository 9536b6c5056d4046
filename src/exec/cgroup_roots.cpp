#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/cgroup.h"
#include "exec/run_dir.h"

namespace berth {

namespace {

bool is_writable(const std::string& directory) {
  return ::access((directory + "/cgroup.procs").c_str(), W_OK) == 0 &&
         ::access(directory.c_str(), W_OK) == 0;
}

bool set(const std::string& path, const std::string& value) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.is_open() && write_all(file.get(), value);
}

bool is_alone_in(const std::string& directory) {
  const auto members = get_file(directory + "/cgroup.procs");
  return members && *members && **members == std::to_string(::getpid()) + "\n";
}

/// Controllers for groups below; without them such groups can still freeze and kill.
void enable_controllers(const std::string& root) {
  if (is_alone_in(root)) {
    const std::string own = root + "/scheduler";
    ::mkdir(own.c_str(), 0755);
    if (!set(own + "/cgroup.procs", "0\n")) return;
  }
  for (const char* controller : {"+cpuset", "+memory", "+cpu"})
    static_cast<void>(set(root + "/cgroup.subtree_control", controller));
}

/// Whether a process of ours can really go into a group there. Rights to make one do not tell:
/// moving needs rights where the process is as well.
bool is_usable(const std::string& root) {
  std::vector<std::string> refused;
  const auto probe = AttemptCgroups::make({root}, "berth.probe", {}, refused);
  if (probe.directories().empty()) return false;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(probe.join() ? 0 : 1);
  int status = 1;
  const bool is_over = child > 0 && ::waitpid(child, &status, 0) == child;
  probe.remove();
  return is_over && status == 0;
}

}  // namespace

std::vector<std::string> find_cgroup_roots(const CgroupPlaces& places) {
  std::vector<std::string> roots;
  const auto listed = get_file(places.self);
  if (!listed || !*listed) return roots;
  std::istringstream lines(**listed);
  // "0::/user.slice", "6:freezer:/", "4:cpu,cpuacct:/batch"
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string hierarchy = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (hierarchy.empty()) {
      for (const char* mount : {"", "/unified"}) {
        const std::string root = places.mount + mount + path;
        if (::access((root + "/cgroup.controllers").c_str(), F_OK) != 0 || !is_writable(root))
          continue;
        enable_controllers(root);
        if (is_usable(root)) roots.insert(roots.begin(), root);
      }
    } else if (hierarchy == "freezer" || hierarchy == "memory" || hierarchy == "cpuset") {
      const std::string root = places.mount + "/" + hierarchy + path;
      if (is_writable(root) && is_usable(root)) roots.push_back(root);
    }
  }
  return roots;
}

}  // namespace berth
