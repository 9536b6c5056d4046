#include "client/slurm/processes.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include <unistd.h>

namespace berth::client::slurm {

namespace {

/// The fields of /proc/PID/stat behind the name, which may hold blanks and brackets.
bool read_stat(const std::filesystem::path& folder, ProcessUse& use) {
  std::ifstream file(folder / "stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto close = text.rfind(')');
  if (close == std::string::npos) return false;
  std::istringstream fields(text.substr(close + 1));
  std::string state;
  std::int64_t skipped = 0, ticks = 0, bytes = 0, pages = 0;
  fields >> state >> use.parent;
  for (int i = 0; i < 7; ++i) fields >> skipped;  // group … minor faults of children
  fields >> use.page_faults >> skipped;
  std::int64_t sum = 0;
  for (int i = 0; i < 4; ++i) {  // user and system, its own and of children
    fields >> ticks;
    sum += ticks;
  }
  for (int i = 0; i < 5; ++i) fields >> skipped;  // priority … start time
  fields >> bytes >> pages;
  if (!fields) return false;
  use.cpu_seconds = static_cast<double>(sum) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  use.virtual_kib = bytes / 1'024;
  use.rss_kib = pages * (::sysconf(_SC_PAGESIZE) / 1'024);
  return true;
}

}  // namespace

std::vector<ProcessUse> all_processes() {
  std::vector<ProcessUse> all;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator("/proc", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename();
    ProcessUse use;
    const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), use.pid);
    if (fault != std::errc{} || end != name.data() + name.size()) continue;
    if (read_stat(entry->path(), use)) all.push_back(use);
  }
  return all;
}

std::vector<ProcessUse> family_of(std::span<const ProcessUse> all, std::int64_t pid,
                                  std::span<const std::int64_t> without) {
  std::set<std::int64_t> members;
  std::vector<ProcessUse> family;
  const auto is_left_out = [&](std::int64_t one) {
    return std::ranges::find(without, one) != without.end();
  };
  // Children may come before their parents in the table: look until nobody is added.
  for (bool is_found = true; is_found;) {
    is_found = false;
    for (const ProcessUse& one : all) {
      const bool belongs = one.pid == pid || members.contains(one.parent);
      if (!belongs || is_left_out(one.pid) || !members.insert(one.pid).second) continue;
      family.push_back(one);
      is_found = true;
    }
  }
  std::ranges::sort(family, {}, &ProcessUse::pid);
  return family;
}

}  // namespace berth::client::slurm
