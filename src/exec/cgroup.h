// The control groups of one attempt: a directory in the unified hierarchy (v2), or one in each of
// several v1 hierarchies, or both, or none. What they can do is seen from the files in them; what
// they cannot do is answered with false, and the caller does it process by process instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace berth {

struct CgroupLimits {
  std::vector<std::int32_t> cores;  // empty: any
  std::int64_t memory_mib = 0;      // 0 = none
};

/// With which the names of all groups of attempts begin.
inline constexpr std::string_view kGroupPrefix = "berth.";

class AttemptCgroups {
 public:
  AttemptCgroups() = default;
  explicit AttemptCgroups(std::vector<std::string> directories)
      : directories_(std::move(directories)) {}
  /// Makes `name` below each root where that is possible, with the limits that it knows. A root
  /// that refuses is left out and named in `refused`.
  [[nodiscard]] static AttemptCgroups make(const std::vector<std::string>& roots,
                                           const std::string& name, const CgroupLimits& limits,
                                           std::vector<std::string>& refused);

  [[nodiscard]] const std::vector<std::string>& directories() const noexcept {
    return directories_;
  }
  /// The calling process goes in, and all its children with it. False: some group refused.
  [[nodiscard]] bool join() const;
  [[nodiscard]] bool set_frozen(bool is_frozen) const;
  /// While it is frozen it holds even the killed, until it is thawed: so does v1.
  [[nodiscard]] bool holds_the_killed() const;
  [[nodiscard]] bool set_cores(const std::vector<std::int32_t>& cores) const;
  [[nodiscard]] bool has_processes() const;
  /// SIGKILL to everything inside.
  [[nodiscard]] bool kill_all() const;
  /// A process was killed because the group was out of memory.
  [[nodiscard]] bool was_out_of_memory() const;
  /// The most memory it has held at once, in KiB; 0: the kernel does not say.
  [[nodiscard]] std::int64_t peak_kib() const;
  /// Empty groups go away; one that is not empty stays.
  void remove() const;

 private:
  std::vector<std::string> directories_;
};

/// Thaws the v1 group this process is in, if it is one of an attempt: what was killed there can go
/// then. For whoever does not know the groups of an attempt.
void thaw_group_of(pid_t pid);

/// Where attempts of this process may have their groups, best first: its own place in each
/// hierarchy that it may write to. In v2 it moves itself to a group "scheduler" below when it is
/// alone, for a group with controllers may hold no process beside its children. Each place is tried
/// with a child that enters it; call it before there are threads.
struct CgroupPlaces {
  std::string mount = "/sys/fs/cgroup";
  std::string self = "/proc/self/cgroup";
};
[[nodiscard]] std::vector<std::string> find_cgroup_roots(const CgroupPlaces& places = {});

}  // namespace berth
