// A stack of "needs a comma" flags, one per open object or array, is all the state there is: values
// go straight into the output string.

#include "base/json_writer.h"

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace berth {

namespace {

/// Looked up, not compared: keys and texts are most of what is written.
constexpr std::array<bool, 256> kIsEscaped = [] {
  std::array<bool, 256> table{};
  for (std::size_t byte = 0; byte < 0x20; ++byte) table[byte] = true;
  // '<' too: the text may stand inside a script element
  for (const char c : {'"', '\\', '<'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

}  // namespace

void JsonWriter::separate() {
  // The colon has already separated the value from its key.
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (needs_comma_.empty()) return;
  if (needs_comma_.back()) out_ += ',';
  needs_comma_.back() = true;
}

JsonWriter& JsonWriter::begin_object() {
  separate();
  out_ += '{';
  needs_comma_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  BERTH_CHECK(!needs_comma_.empty(), "JSON: end without begin");
  needs_comma_.pop_back();
  out_ += '}';
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  separate();
  out_ += '[';
  needs_comma_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  BERTH_CHECK(!needs_comma_.empty(), "JSON: end without begin");
  needs_comma_.pop_back();
  out_ += ']';
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  out_ += '"';
  std::size_t plain = 0;  // from here on nothing needs escaping: copied in one go
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (!kIsEscaped[byte]) continue;
    out_.append(text, plain, i - plain);
    plain = i + 1;
    if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += c;
    } else if (c == '\n') {
      out_ += "\\n";
    } else {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", byte);
    }
  }
  out_.append(text, plain, text.size() - plain);
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  // JSON knows neither NaN nor infinity; null is what readers of our files expect for "no number".
  if (!std::isfinite(number)) return null();
  separate();
  // The shortest text that reads back as the same double, so equal runs write equal bytes.
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) {
  separate();
  out_ += flag ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t number) {
  separate();
  const fmt::format_int digits(number);
  out_.append(digits.data(), digits.size());
  return *this;
}

JsonWriter& JsonWriter::unsigned_integer(std::uint64_t number) {
  separate();
  const fmt::format_int digits(number);
  out_.append(digits.data(), digits.size());
  return *this;
}

const std::string& JsonWriter::str() const {
  BERTH_CHECK(needs_comma_.empty() && !after_key_, "JSON: an object or array is still open");
  return out_;
}

std::string JsonWriter::take() {
  BERTH_CHECK(needs_comma_.empty() && !after_key_, "JSON: an object or array is still open");
  return std::move(out_);
}

}  // namespace berth
