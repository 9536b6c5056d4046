#include "exec/cgroup.h"

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/order_file.h"
#include "exec/run_dir.h"

namespace berth {

namespace {

bool has(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Control files take a value in one write; there is nothing to create.
bool set(const std::string& path, const std::string& value) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  return file.is_open() &&
         ::write(file.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

std::string get(const std::string& path) {
  const auto bytes = get_file(path);
  return bytes && *bytes ? **bytes : std::string{};
}

/// A v1 set of cores takes no process before it has cores and memory nodes: those of its parent.
void inherit_cpuset(const std::string& parent, const std::string& directory) {
  for (const char* name : {"/cpuset.mems", "/cpuset.cpus"})
    if (has(directory + name) && get(directory + name) == "\n")
      set(directory + name, get(parent + name));
}

bool apply_limits(const std::string& directory, const CgroupLimits& limits) {
  bool is_good = true;
  const std::string bytes = std::to_string(limits.memory_mib << 20U);
  if (limits.memory_mib > 0)
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"})
      if (has(directory + name)) is_good = set(directory + name, bytes) && is_good;
  if (!limits.cores.empty() && has(directory + "/cpuset.cpus"))
    is_good = set(directory + "/cpuset.cpus", cores_text(limits.cores)) && is_good;
  return is_good;
}

bool has_count(const std::string& text, std::string_view name) {
  const auto at = text.find(name);
  return at != std::string::npos && text[at + name.size()] != '0';
}

}  // namespace

AttemptCgroups AttemptCgroups::make(const std::vector<std::string>& roots, const std::string& name,
                                    const CgroupLimits& limits, std::vector<std::string>& refused) {
  AttemptCgroups made;
  for (const std::string& root : roots) {
    const std::string directory = root + "/" + name;
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
      refused.push_back(root);
      continue;
    }
    inherit_cpuset(root, directory);
    if (apply_limits(directory, limits)) {
      made.directories_.push_back(directory);
    } else {
      refused.push_back(root);
      ::rmdir(directory.c_str());
    }
  }
  return made;
}

bool AttemptCgroups::join() const {
  bool is_good = true;
  for (const std::string& directory : directories_)
    is_good = set(directory + "/cgroup.procs", "0\n") && is_good;
  return is_good;
}

bool AttemptCgroups::set_frozen(bool is_frozen) const {
  for (const std::string& directory : directories_) {
    if (has(directory + "/cgroup.freeze"))
      return set(directory + "/cgroup.freeze", is_frozen ? "1" : "0");
    if (has(directory + "/freezer.state"))
      return set(directory + "/freezer.state", is_frozen ? "FROZEN" : "THAWED");
  }
  return false;
}

bool AttemptCgroups::holds_the_killed() const {
  for (const std::string& directory : directories_) {
    if (has(directory + "/cgroup.freeze")) return false;
    if (has(directory + "/freezer.state")) return true;
  }
  return false;
}

void thaw_group_of(pid_t pid) {
  // "6:freezer:/berth.39fdac66.1.1"
  std::istringstream lines(get("/proc/" + std::to_string(pid) + "/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const auto path = line.find(":freezer:/");
    if (path == std::string::npos) continue;
    const std::string group = line.substr(path + std::string_view(":freezer:").size());
    if (!group.substr(group.rfind('/') + 1).starts_with(kGroupPrefix)) continue;
    static_cast<void>(set("/sys/fs/cgroup/freezer" + group + "/freezer.state", "THAWED"));
  }
}

bool AttemptCgroups::set_cores(const std::vector<std::int32_t>& cores) const {
  for (const std::string& directory : directories_) {
    if (!has(directory + "/cpuset.cpus")) continue;
    if (!cores.empty()) return set(directory + "/cpuset.cpus", cores_text(cores));
    const std::string parent = directory.substr(0, directory.rfind('/'));
    // v2: an empty set means the parent's; v1 wants them by name.
    return has(directory + "/cgroup.freeze")
               ? set(directory + "/cpuset.cpus", "\n")
               : set(directory + "/cpuset.cpus", get(parent + "/cpuset.cpus"));
  }
  return false;
}

bool AttemptCgroups::has_processes() const {
  for (const std::string& directory : directories_)
    if (!get(directory + "/cgroup.procs").empty()) return true;
  return false;
}

bool AttemptCgroups::kill_all() const {
  for (const std::string& directory : directories_)
    if (has(directory + "/cgroup.kill")) return set(directory + "/cgroup.kill", "1");
  return false;
}

bool AttemptCgroups::was_out_of_memory() const {
  for (const std::string& directory : directories_)
    for (const char* name : {"/memory.events", "/memory.oom_control"})
      if (has_count(get(directory + name), "oom_kill ")) return true;
  return false;
}

std::int64_t AttemptCgroups::peak_kib() const {
  for (const std::string& directory : directories_) {
    for (const char* name : {"/memory.peak", "/memory.max_usage_in_bytes"}) {
      const std::int64_t bytes = std::strtoll(get(directory + name).c_str(), nullptr, 10);
      if (bytes > 0) return bytes / 1024;
    }
  }
  return 0;
}

void AttemptCgroups::remove() const {
  for (const std::string& directory : directories_) ::rmdir(directory.c_str());
}

}  // namespace berth
