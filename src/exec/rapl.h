// What the processors and their memory have used, where the machine counts it (Intel's and AMD's
// RAPL by the kernel's powercap).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth {

class Rapl {
 public:
  explicit Rapl(const std::string& root = "/sys/class/powercap");
  /// Whether there is anything to read.
  [[nodiscard]] bool is_there() const noexcept { return !packages_.empty(); }
  /// Joules since the last call. Counters wrap at a range that they state: whoever calls at least
  /// once in safe_seconds() misses nothing. Nothing: a counter cannot be read or went back.
  [[nodiscard]] std::optional<double> joules();
  /// So long that a thousand watts a package fill no counter.
  [[nodiscard]] double safe_seconds() const noexcept;

 private:
  struct Counter {
    std::string file;
    std::uint64_t range = 0;  // microjoules
    std::uint64_t last = 0;
  };
  std::vector<Counter> packages_;
};

}  // namespace berth
