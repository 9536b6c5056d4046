// One line per event, as text for people or as a JSON object. Names and messages can come from
// users, so control characters and broken UTF-8 are escaped: a log line can neither be split nor
// steer the terminal that shows it.

#include "base/log.h"

#include <cerrno>
#include <chrono>
#include <ctime>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/terminal_text.h"

namespace berth {

namespace {

std::string time_text(std::int64_t unix_millis) {
  // Also right for times before 1970, where % alone is negative.
  const std::int64_t millis = ((unix_millis % 1000) + 1000) % 1000;
  const auto seconds = static_cast<std::time_t>((unix_millis - millis) / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     millis);
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
  }
}

enum class Quotes : bool { Never, Needed };

void append_text(std::string& out, std::string_view text, Quotes quotes) {
  // Values with blanks, quotes or '=' are quoted, so that key=value pairs can be split again.
  const bool is_quoted = quotes == Quotes::Needed &&
                         (text.empty() || text.find_first_of(" \"=\\") != std::string_view::npos);
  if (is_quoted) out += '"';
  while (!text.empty()) {
    const Character first = first_character(text);
    const std::string_view character = text.substr(0, first.bytes);
    if (!first.is_valid || is_unsafe(first.code))
      append_escaped(out, character);
    else if (character == "\\" || (is_quoted && character == "\""))
      out.append("\\").append(character);
    else
      out += character;
    text.remove_prefix(character.size());
  }
  if (is_quoted) out += '"';
}

std::string as_unicode(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const Character first = first_character(text);
    // U+FFFD, the replacement character: JSON must be valid UTF-8.
    clean += first.is_valid ? text.substr(0, first.bytes) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(first.bytes);
  }
  return clean;
}

void append_value(std::string& out, const LogField::Value& value) {
  if (const auto* text = std::get_if<std::string_view>(&value))
    return append_text(out, *text, Quotes::Needed);
  std::visit([&](const auto& number) { fmt::format_to(std::back_inserter(out), "{}", number); },
             value);
}

std::string json_line(LogLevel level, std::int64_t unix_millis, std::string_view part,
                      std::string_view message, std::initializer_list<LogField> fields) {
  JsonWriter json;
  json.begin_object();
  json.field("time", time_text(unix_millis)).field("level", to_string(level));
  json.field("part", as_unicode(part)).field("message", as_unicode(message));
  for (const LogField& field : fields) {
    json.key(as_unicode(field.name));
    if (const auto* text = std::get_if<std::string_view>(&field.value))
      json.value(as_unicode(*text));
    else
      std::visit([&](const auto& value) { json.value(value); }, field.value);
  }
  json.end_object();
  return harmless_json(json.str());  // a log is read on terminals too
}

std::int64_t wall_millis() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

bool write_whole(int fd, std::string_view line) {
  while (!line.empty()) {
    const ssize_t done = ::write(fd, line.data(), line.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    line.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::Debug: return "debug";
    case LogLevel::Info: return "info";
    case LogLevel::Warn: return "warn";
    case LogLevel::Error: return "error";
    case LogLevel::Off: break;
  }
  return "off";
}

std::optional<LogLevel> log_level_from(std::string_view text) noexcept {
  for (const LogLevel level :
       {LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error, LogLevel::Off})
    if (to_string(level) == text) return level;
  return std::nullopt;
}

std::optional<LogFormat> log_format_from(std::string_view text) noexcept {
  if (text == "text") return LogFormat::Text;
  if (text == "json") return LogFormat::Json;
  return std::nullopt;
}

std::string log_line(LogFormat format, LogLevel level, std::int64_t unix_millis,
                     std::string_view part, std::string_view message,
                     std::initializer_list<LogField> fields) {
  if (format == LogFormat::Json) return json_line(level, unix_millis, part, message, fields);
  std::string line = fmt::format("{:<5} {} ", to_string(level), time_text(unix_millis));
  append_text(line, part, Quotes::Never);
  line += ' ';
  append_text(line, message, Quotes::Never);
  for (const LogField& field : fields) {
    line += ' ';
    append_text(line, field.name, Quotes::Needed);
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

Logger::Logger(Options options) : options_(std::move(options)), level_(options_.level) {}

void Logger::write(LogLevel level, std::string_view part, std::string_view message,
                   std::initializer_list<LogField> fields) {
  if (!is_on(level) || level == LogLevel::Off) return;
  const std::int64_t now = options_.now ? options_.now() : wall_millis();
  const std::string line = log_line(options_.format, level, now, part, message, fields) + "\n";
  // The line is complete before the lock is taken, so threads wait only for each other's write.
  const std::lock_guard lock(mutex_);
  if (!write_whole(options_.fd, line)) lost_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace berth
