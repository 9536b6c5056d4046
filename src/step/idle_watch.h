// When a session counts as idle: nobody types, its processes use less than a hundredth of a core
// and its GPUs compute nothing. Knows neither clock nor processes; it is told.
#pragma once

#include <cstdint>

namespace berth::step {

class IdleWatch {
 public:
  /// Times are microseconds of any clock that does not go back. A limit of 0: never idle.
  IdleWatch(std::int64_t limit_micros, std::int64_t now) noexcept;

  /// Somebody typed.
  void note_use(std::int64_t now) noexcept;

  struct Look {
    std::int64_t now = 0;
    std::int64_t cpu_micros = 0;  // since the last look
    bool are_gpus_busy = false;
  };
  enum class Verdict : std::uint8_t {
    Fine,
    Warn,  // once, at four fifths of the limit
    End,
  };
  [[nodiscard]] Verdict look(const Look& seen) noexcept;
  [[nodiscard]] bool has_limit() const noexcept { return limit_ > 0; }
  [[nodiscard]] std::int64_t next_look() const noexcept { return next_look_; }
  [[nodiscard]] std::int64_t idle_micros(std::int64_t now) const noexcept { return now - used_; }
  [[nodiscard]] std::int64_t limit_micros() const noexcept { return limit_; }

 private:
  std::int64_t limit_;
  std::int64_t interval_;
  std::int64_t used_;  // when it last was in use
  std::int64_t last_look_;
  std::int64_t next_look_;
  bool is_warned_ = false;
};

}  // namespace berth::step
