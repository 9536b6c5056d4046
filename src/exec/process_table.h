// Processes as the kernel lists them: who descends from whom, signals that reach the process that
// was meant even if its number was used again, and cores for all threads. Works from /proc alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace berth {

struct ProcessRow {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';         // R S D T t Z X
  std::uint64_t start = 0;  // clock ticks since boot: with the pid, a name for ever
  [[nodiscard]] bool is_alive() const noexcept { return state != 'Z' && state != 'X'; }
  [[nodiscard]] bool is_stopped() const noexcept { return state == 'T' || state == 't'; }
};

[[nodiscard]] std::optional<ProcessRow> process_row(pid_t pid);
[[nodiscard]] std::vector<ProcessRow> all_processes();
/// Living processes below `ancestor`, without itself.
[[nodiscard]] std::vector<ProcessRow> descendants_of(pid_t ancestor);
/// It was sent a SIGKILL and is not gone yet.
[[nodiscard]] bool is_being_killed(pid_t pid);
/// False if that process is gone.
bool send_signal(const ProcessRow& process, int number);
/// Binds all its threads, also those that are made meanwhile; false if the machine has no such
/// cores. Empty: all cores there are.
bool bind_process(pid_t pid, const std::vector<std::int32_t>& cores);
/// Its environment has an entry that begins so ("NAME="), as far as we may look.
[[nodiscard]] bool has_variable(pid_t pid, const std::string& beginning);
/// Living processes whose environment has this entry ("NAME=value"), as far as we may look.
[[nodiscard]] std::vector<ProcessRow> processes_with(const std::string& entry);

}  // namespace berth
