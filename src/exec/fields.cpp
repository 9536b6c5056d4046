#include "exec/fields.h"

#include <charconv>
#include <cstring>

#include "base/digest.h"

namespace berth {

namespace {

constexpr std::size_t kSumDigits = 16;
// "sum 16:" + digits + newline
constexpr std::size_t kSumLine = 4 + 3 + kSumDigits + 1;

std::string checksum(std::string_view bytes) {
  Digest digest;
  digest.add(static_cast<std::uint64_t>(bytes.size()));
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    digest.add(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  digest.add(rest);
  std::string text(kSumDigits, '0');
  for (std::size_t i = 0; i < kSumDigits; ++i)
    text[kSumDigits - 1 - i] = "0123456789abcdef"[(digest.value() >> (4 * i)) & 15U];
  return text;
}

std::string first_line(std::string_view kind) { return "berth-" + std::string(kind) + " 1\n"; }

/// Takes one field off the front of `bytes`; nothing if it is none.
std::optional<Field> take_field(std::string_view& bytes) {
  const auto space = bytes.find(' ');
  const auto colon = bytes.find(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space)
    return std::nullopt;
  const auto length = integer_of(bytes.substr(space + 1, colon - space - 1));
  const std::size_t room = bytes.size() - colon - 1;
  if (!length || *length < 0 || static_cast<std::uint64_t>(*length) + 1 > room) return std::nullopt;
  const auto size = static_cast<std::size_t>(*length);
  if (bytes[colon + 1 + size] != '\n') return std::nullopt;
  const Field field{bytes.substr(0, space), bytes.substr(colon + 1, size)};
  bytes.remove_prefix(colon + 1 + size + 1);
  return field;
}

}  // namespace

std::optional<std::int64_t> integer_of(std::string_view text) noexcept {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || at != end) return std::nullopt;
  return value;
}

FieldWriter::FieldWriter(std::string_view kind) : out_(first_line(kind)) {}

void FieldWriter::add(std::string_view name, std::string_view value) {
  out_.append(name).append(" ").append(std::to_string(value.size())).append(":");
  out_.append(value).append("\n");
}

void FieldWriter::add(std::string_view name, std::int64_t value) {
  add(name, std::string_view(std::to_string(value)));
}

std::string FieldWriter::finish() && {
  add("sum", std::string_view(checksum(out_)));
  return std::move(out_);
}

Result<std::vector<Field>> read_fields(std::string_view bytes, std::string_view kind) {
  const std::string begin = first_line(kind);
  if (!bytes.starts_with(begin))
    return fail("it does not begin with '" + begin.substr(0, begin.size() - 1) + "'");
  if (bytes.size() < begin.size() + kSumLine) return fail("it is cut short");
  const std::string_view summed = bytes.substr(0, bytes.size() - kSumLine);
  if (bytes.substr(summed.size()) != "sum 16:" + checksum(summed) + "\n")
    return fail("its checksum does not match: cut short or damaged");
  std::string_view rest = summed.substr(begin.size());
  std::vector<Field> fields;
  while (!rest.empty()) {
    const auto field = take_field(rest);
    if (!field) return fail("field " + std::to_string(fields.size() + 1) + " is malformed");
    fields.push_back(*field);
  }
  return fields;
}

}  // namespace berth
