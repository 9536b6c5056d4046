// Processes of this machine as a session sees them: who belongs to it, and how much they compute.
// From /proc alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace berth::step {

struct ProcessUse {
  pid_t pid = 0, parent = 0, session = 0;
  std::uint64_t start = 0;      // clock ticks since boot
  std::int64_t cpu_micros = 0;  // its own, and of the children it has waited for
};

/// A line of /proc/PID/stat; nothing if it is none.
[[nodiscard]] std::optional<ProcessUse> process_from(std::string_view stat);
[[nodiscard]] std::vector<ProcessUse> running_processes();
/// Those below `ancestor`, without itself.
[[nodiscard]] std::vector<ProcessUse> below(pid_t ancestor, const std::vector<ProcessUse>& all);

/// A signal to every process of a session.
void signal_session(pid_t session, int number);

/// How much some processes have computed between two looks.
class CpuMeter {
 public:
  /// Since the last call; of the first: zero.
  [[nodiscard]] std::int64_t micros_since(const std::vector<ProcessUse>& processes);

 private:
  std::map<std::pair<pid_t, std::uint64_t>, std::int64_t> before_;
  bool has_looked_ = false;
};

}  // namespace berth::step
