// A structured log: one line per fact, with a level, a time, the part that speaks and named values.
// As text for people, or a JSON object per line for machines. Everything from outside is escaped,
// so that no value can end a line or pretend to be another field. Safe from any thread; a line is
// written whole by one call. Libraries take a Logger; none is global. The journal, not the log, is
// the record of what happened.
//   BERTH_LOG(log, Info, "host", "attempt ended", {"job", 17}, {"exit", 0});
//   info 2026-11-16T15:39:25.123Z host attempt ended job=17 exit=0
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace berth {

enum class LogLevel : std::uint8_t {
  Debug,  // decisions
  Info,   // life cycle
  Warn,   // we coped
  Error,  // someone must act
  Off,
};
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;
[[nodiscard]] std::optional<LogLevel> log_level_from(std::string_view text) noexcept;

enum class LogFormat : std::uint8_t { Text, Json };
[[nodiscard]] std::optional<LogFormat> log_format_from(std::string_view text) noexcept;

/// A named value; borrowed for the duration of the call.
struct LogField {
  using Value = std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view>;

  LogField(std::string_view field_name, std::string_view text) : name(field_name), value(text) {}
  LogField(std::string_view field_name, const std::string& text)
      : name(field_name), value(std::string_view(text)) {}
  LogField(std::string_view field_name, const char* text)
      : name(field_name), value(std::string_view(text)) {}
  LogField(std::string_view field_name, bool flag) : name(field_name), value(flag) {}
  LogField(std::string_view field_name, double number) : name(field_name), value(number) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) LogField(std::string_view field_name, T number)
      : name(field_name) {
    if constexpr (std::signed_integral<T>)
      value = static_cast<std::int64_t>(number);
    else
      value = static_cast<std::uint64_t>(number);
  }

  std::string_view name;
  Value value;
};

class Logger {
 public:
  struct Options {
    LogLevel level = LogLevel::Info;
    LogFormat format = LogFormat::Text;
    int fd = 2;                              // stays the caller's
    std::function<std::int64_t()> now = {};  // Unix milliseconds; empty: the wall clock
  };
  Logger() : Logger(Options{}) {}
  explicit Logger(Options options);

  [[nodiscard]] bool is_on(LogLevel level) const noexcept {
    return level >= level_.load(std::memory_order_relaxed);
  }
  void set_level(LogLevel level) noexcept { level_.store(level, std::memory_order_relaxed); }
  /// Writes it if the level is on.
  void write(LogLevel level, std::string_view part, std::string_view message,
             std::initializer_list<LogField> fields = {});
  /// Lines that could not be written.
  [[nodiscard]] std::uint64_t lost() const noexcept {
    return lost_.load(std::memory_order_relaxed);
  }

 private:
  const Options options_;
  std::atomic<LogLevel> level_;
  std::atomic<std::uint64_t> lost_{0};
  std::mutex mutex_;
};

/// The line for a fact, without its end.
[[nodiscard]] std::string log_line(LogFormat format, LogLevel level, std::int64_t unix_millis,
                                   std::string_view part, std::string_view message,
                                   std::initializer_list<LogField> fields);

}  // namespace berth

/// A level that is off costs a branch: no value is looked at.
#define BERTH_LOG(logger, level, part, message, ...)                                          \
  do {                                                                                        \
    if ((logger).is_on(::berth::LogLevel::level))                                             \
      (logger).write(::berth::LogLevel::level, (part), (message)__VA_OPT__(, {__VA_ARGS__})); \
  } while (false)
