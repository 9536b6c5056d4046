// Keeps a fault that recurs from filling the log: it is logged once a minute, with how often it came
// in between. Every occurrence is counted, for a metric. A cause is a fixed word of the program
// ("run-directory"), never text from outside. Safe from any thread.
//   if (const auto unsaid = limit.admit("run-directory"))
//     BERTH_LOG(log, Error, "host", "cannot be written", {"why", why}, {"unsaid", *unsaid});
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

class LogLimit {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::chrono::seconds pause{60};
    std::function<Clock::time_point()> now = {};  // empty: the steady clock
  };
  LogLimit() : LogLimit(Options{}) {}
  explicit LogLimit(Options options);

  /// Counts it. A number: say it now; so many came unsaid since it was last said. Nothing: it was
  /// said less than a pause ago.
  [[nodiscard]] std::optional<std::uint64_t> admit(std::string_view cause);
  /// How often each cause came, said or not, by name.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> counts() const;

 private:
  struct Entry {
    std::optional<Clock::time_point> said;
    std::uint64_t unsaid = 0;
    std::uint64_t count = 0;
  };
  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace berth
