// Writing and reading our own CSV. The reader is for files of `--out` directories: it knows that a
// header is there and complains about at most ten places.

#include "report/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/file.h"

namespace berth {

namespace {
constexpr std::size_t kMaxComplaints = 10;
}

void put_csv(std::string& out, std::string_view field) {
  const bool plain = field.find_first_of(",\"\r\n") == std::string_view::npos &&
                     (field.empty() || (field.front() != ' ' && field.back() != ' '));
  if (plain) {
    out += field;
    return;
  }
  out += '"';
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

std::string seconds_text(Duration duration) {
  const std::int64_t ticks = duration.count();
  const std::int64_t whole = ticks / 1'000'000;
  const std::int64_t rest = std::abs(ticks % 1'000'000);
  if (rest == 0) return fmt::format("{}", whole);
  // Exact: six decimals are one tick. Integer division has no "-0", hence the sign by hand.
  std::string text = fmt::format("{}{}.{:06}", ticks < 0 && whole == 0 ? "-" : "", whole, rest);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

Result<CsvFile> CsvFile::open(const std::string& path) {
  CsvFile file;
  file.path_ = path;
  BERTH_TRY(file.bytes_, read_file(path));
  if (!file.read_row(file.head_))
    return fail(fmt::format("{}:1:1: empty (a header line is expected)", path));
  return file;
}

// A small automaton: quotes may hold commas and line breaks, a doubled quote is one.
bool CsvFile::read_row(std::vector<std::string>& fields) {
  fields.clear();
  if (position_ >= bytes_.size()) return false;
  line_ = next_line_;
  std::string field;
  bool quoted = false;
  for (; position_ < bytes_.size(); ++position_) {
    const char c = bytes_[position_];
    if (c == '\n') ++next_line_;
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (position_ + 1 < bytes_.size() && bytes_[position_ + 1] == '"') {
        field += '"';
        ++position_;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.push_back(std::exchange(field, {}));
    } else if (c == '\n') {
      ++position_;
      break;
    } else if (c != '\r') {
      field += c;
    }
  }
  fields.push_back(std::move(field));
  return true;
}

// A row of another width is reported and skipped: the others can still be used.
bool CsvFile::next() {
  while (read_row(row_)) {
    if (row_.size() == 1 && row_.front().empty()) continue;  // a blank line
    if (row_.size() == head_.size()) return true;
    complain({}, fmt::format("{} fields, the header has {} (the file was cut or edited)",
                             row_.size(), head_.size()));
  }
  return false;
}

bool CsvFile::has(std::string_view column) const noexcept {
  return std::ranges::find(head_, column) != head_.end();
}

std::string_view CsvFile::text(std::string_view column) const noexcept {
  const auto found = std::ranges::find(head_, column);
  return found == head_.end() ? std::string_view{}
                              : row_[static_cast<std::size_t>(found - head_.begin())];
}

// An empty cell means "does not apply" in our files and is no error.
std::optional<double> CsvFile::number(std::string_view column) {
  const std::string_view field = text(column);
  if (field.empty()) return std::nullopt;
  double value = 0;
  const auto [end, code] = std::from_chars(field.data(), field.data() + field.size(), value);
  // Beyond this limit a number of seconds would overflow the clock.
  if (code == std::errc{} && end == field.data() + field.size() &&
      std::abs(value) <= kMaxInputSeconds)
    return value;
  complain(column, fmt::format("'{}' is not a number", field));
  return std::nullopt;
}

std::optional<Time> CsvFile::time(std::string_view column) {
  const auto seconds = number(column);
  if (!seconds) return std::nullopt;
  return seconds_to_time(*seconds);
}

void CsvFile::complain(std::string_view column, std::string_view fact) {
  // An edited file is wrong in every row; ten places are enough to see how.
  if (error_.messages.size() >= kMaxComplaints) return;
  const auto place = static_cast<std::size_t>(std::ranges::find(head_, column) - head_.begin());
  error_.messages.push_back(
      fmt::format("{}:{}:{}: {}", path_, line_, place < head_.size() ? place + 1 : 1, fact));
}

Result<void> CsvFile::check() const {
  if (error_.messages.empty()) return {};
  return tl::unexpected<Error>(error_);
}

}  // namespace berth
