#include "step/process_use.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <set>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/split.h"

namespace berth::step {

namespace {

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<ProcessUse> process_of(const char* pid) {
  const Fd file(::open((std::string("/proc/") + pid + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  std::array<char, 1024> line{};
  const ssize_t got = ::read(file.get(), line.data(), line.size());
  if (got <= 0) return std::nullopt;
  return process_from(std::string_view(line.data(), static_cast<std::size_t>(got)));
}

}  // namespace

std::optional<ProcessUse> process_from(std::string_view stat) {
  // The name may hold anything, also spaces and parentheses: the last one ends it.
  const auto open = stat.find(" (");
  const auto close = stat.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  const auto pid = number(stat.substr(0, open));
  const auto fields = split(stat.substr(close + 2), ' ');
  if (!pid || fields.size() < 20) return std::nullopt;
  const auto at = [&](std::size_t index) { return number(fields[index]).value_or(0); };
  static const std::int64_t tick = 1'000'000 / std::max(1L, ::sysconf(_SC_CLK_TCK));
  ProcessUse process;
  process.pid = static_cast<pid_t>(*pid);
  process.parent = static_cast<pid_t>(at(1));
  process.session = static_cast<pid_t>(at(3));
  process.start = static_cast<std::uint64_t>(at(19));
  process.cpu_micros = (at(11) + at(12) + at(13) + at(14)) * tick;
  return process;
}

std::vector<ProcessUse> running_processes() {
  std::vector<ProcessUse> found;
  DIR* listing = ::opendir("/proc");
  if (listing == nullptr) return found;
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    if (const auto process = process_of(entry->d_name)) found.push_back(*process);
  }
  ::closedir(listing);
  return found;
}

std::vector<ProcessUse> below(pid_t ancestor, const std::vector<ProcessUse>& all) {
  std::multimap<pid_t, const ProcessUse*> children;
  for (const ProcessUse& process : all) children.emplace(process.parent, &process);
  std::vector<ProcessUse> found;
  std::vector<pid_t> open{ancestor};
  std::set<pid_t> seen{ancestor};
  while (!open.empty()) {
    const auto [first, last] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = first; child != last; ++child) {
      if (!seen.insert(child->second->pid).second) continue;
      found.push_back(*child->second);
      open.push_back(child->second->pid);
    }
  }
  return found;
}

void signal_session(pid_t session, int number) {
  if (session <= 1) return;
  for (const ProcessUse& process : running_processes())
    if (process.session == session) ::kill(process.pid, number);
}

std::int64_t CpuMeter::micros_since(const std::vector<ProcessUse>& processes) {
  std::map<std::pair<pid_t, std::uint64_t>, std::int64_t> now;
  std::int64_t used = 0;
  for (const ProcessUse& process : processes) {
    const std::pair key(process.pid, process.start);
    now[key] = process.cpu_micros;
    const auto before = before_.find(key);
    used += std::max<std::int64_t>(
        0, process.cpu_micros - (before == before_.end() ? 0 : before->second));
  }
  before_ = std::move(now);
  if (!has_looked_) used = 0;
  has_looked_ = true;
  return used;
}

}  // namespace berth::step
