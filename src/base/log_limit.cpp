#include "base/log_limit.h"

namespace berth {

LogLimit::LogLimit(Options options) : options_(std::move(options)) {}

std::optional<std::uint64_t> LogLimit::admit(std::string_view cause) {
  const Clock::time_point now = options_.now ? options_.now() : Clock::now();
  const std::lock_guard lock(mutex_);
  auto found = entries_.find(cause);
  if (found == entries_.end()) found = entries_.emplace(cause, Entry{}).first;
  Entry& entry = found->second;
  ++entry.count;
  // The pause counts from the last line that was written, so a cause that never stops still shows
  // once per pause, with the number of lines left out.
  if (entry.said && now - *entry.said < options_.pause) {
    ++entry.unsaid;
    return std::nullopt;
  }
  entry.said = now;
  return std::exchange(entry.unsaid, 0);
}

std::vector<std::pair<std::string, std::uint64_t>> LogLimit::counts() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (const auto& [cause, entry] : entries_) all.emplace_back(cause, entry.count);
  return all;
}

}  // namespace berth
