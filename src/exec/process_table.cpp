#include "exec/process_table.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/fields.h"
#include "exec/order_file.h"
#include "exec/run_dir.h"

namespace berth {

namespace {

std::optional<pid_t> pid_of(const char* name) noexcept {
  const auto number = integer_of(name);
  if (!number || *number <= 0) return std::nullopt;
  return static_cast<pid_t>(*number);
}

template <class Visit>
void for_each_number(const std::string& directory, Visit visit) {
  DIR* listing = ::opendir(directory.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = ::readdir(listing))
    if (const auto pid = pid_of(entry->d_name)) visit(*pid);
  ::closedir(listing);
}

/// "PID (name) S PPID …": the name may hold anything, so fields are counted from its last bracket.
std::optional<ProcessRow> parse_stat(pid_t pid, std::string_view text) {
  const auto bracket = text.rfind(')');
  if (bracket == std::string_view::npos || bracket + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(bracket + 2);
  ProcessRow row{.pid = pid, .state = text.front()};
  for (int field = 3; field <= 22; ++field) {
    const auto end = text.find(' ');
    const auto word = text.substr(0, end);
    if (field == 4) row.parent = static_cast<pid_t>(integer_of(word).value_or(0));
    if (field == 22) row.start = static_cast<std::uint64_t>(integer_of(word).value_or(0));
    if (end == std::string_view::npos && field < 22) return std::nullopt;
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return row;
}

/// A set of cores of any size the kernel may want.
class CoreSet {
 public:
  explicit CoreSet(const std::vector<std::int32_t>& cores) : set_(CPU_ALLOC(kMaxCore + 1)) {
    CPU_ZERO_S(size(), set_);
    for (std::int32_t core = 0; cores.empty() && core <= kMaxCore; ++core) add(core);
    for (const std::int32_t core : cores) add(core);
  }
  ~CoreSet() { CPU_FREE(set_); }
  CoreSet(const CoreSet&) = delete;
  CoreSet& operator=(const CoreSet&) = delete;
  [[nodiscard]] bool bind(pid_t thread) const {
    return ::sched_setaffinity(thread, size(), set_) == 0 || errno == ESRCH;
  }

 private:
  static std::size_t size() { return CPU_ALLOC_SIZE(kMaxCore + 1); }
  void add(std::int32_t core) { CPU_SET_S(static_cast<std::size_t>(core), size(), set_); }
  cpu_set_t* set_;
};

}  // namespace

std::optional<ProcessRow> process_row(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  char text[1024];
  const ssize_t got = ::read(file.get(), text, sizeof text);
  if (got <= 0) return std::nullopt;
  return parse_stat(pid, std::string_view(text, static_cast<std::size_t>(got)));
}

std::vector<ProcessRow> all_processes() {
  std::vector<ProcessRow> rows;
  for_each_number("/proc", [&](pid_t pid) {
    if (const auto row = process_row(pid)) rows.push_back(*row);
  });
  return rows;
}

std::vector<ProcessRow> descendants_of(pid_t ancestor) {
  const std::vector<ProcessRow> all = all_processes();
  std::set<pid_t> family{ancestor};
  std::vector<ProcessRow> found;
  // Parents are not always listed before their children: repeat until nobody new is found.
  for (std::size_t known = 0; known != family.size();) {
    known = family.size();
    for (const ProcessRow& row : all)
      if (family.contains(row.parent)) family.insert(row.pid);
  }
  for (const ProcessRow& row : all)
    if (row.pid != ancestor && row.is_alive() && family.contains(row.pid)) found.push_back(row);
  return found;
}

bool is_being_killed(pid_t pid) {
  constexpr std::uint64_t kKill = std::uint64_t{1} << (SIGKILL - 1);
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    if ((std::strtoull(line.c_str() + 7, nullptr, 16) & kKill) != 0) return true;
  }
  return false;
}

bool send_signal(const ProcessRow& process, int number) {
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0U)));
  if (!handle.is_open()) return false;
  // The handle stays with whoever has the number now; is that still the one we mean?
  const auto now = process_row(process.pid);
  if (!now || now->start != process.start) return false;
  return ::syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0U) == 0;
}

bool bind_process(pid_t pid, const std::vector<std::int32_t>& cores) {
  const CoreSet set(cores);
  const std::string threads = "/proc/" + std::to_string(pid) + "/task";
  std::set<pid_t> bound;
  // A thread made by one that is not yet bound has the old cores: look again until none is new.
  for (bool is_new = true; is_new;) {
    is_new = false;
    bool is_good = true;
    for_each_number(threads, [&](pid_t thread) {
      if (!bound.insert(thread).second) return;
      is_new = true;
      is_good = set.bind(thread) && is_good;
    });
    if (!is_good) return false;
  }
  return true;
}

bool has_variable(pid_t pid, const std::string& beginning) {
  const auto bytes = get_file("/proc/" + std::to_string(pid) + "/environ");
  return bytes && *bytes && ('\0' + **bytes).find('\0' + beginning) != std::string::npos;
}

std::vector<ProcessRow> processes_with(const std::string& entry) {
  std::vector<ProcessRow> found;
  const std::string framed = '\0' + entry + '\0';
  for (const ProcessRow& row : all_processes()) {
    if (!row.is_alive()) continue;
    const auto bytes = get_file("/proc/" + std::to_string(row.pid) + "/environ");
    if (!bytes || !*bytes) continue;
    if (('\0' + **bytes + '\0').find(framed) != std::string::npos) found.push_back(row);
  }
  return found;
}

}  // namespace berth
