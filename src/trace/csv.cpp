// Rows as views into the bytes of the file. The common case, a line without quotes, is split
// without copying anything; only a field with doubled quotes is written down anew.

#include "trace/csv.h"

#include <algorithm>
#include <array>

namespace berth {

namespace {

bool is_blank(std::span<const std::string_view> fields) noexcept {
  return std::ranges::all_of(fields, [](std::string_view field) { return field.empty(); }) &&
         fields.size() <= 1;
}

}  // namespace

CsvRows::CsvRows(std::string_view bytes, std::string_view delimiter, CsvQuotes quotes)
    : bytes_(without_bom(bytes)), delimiter_(delimiter), quotes_(quotes) {}

bool CsvRows::next() {
  while (position_ < bytes_.size()) {
    read_row();
    if (!is_blank(fields_)) return true;
  }
  return false;
}

void CsvRows::read_row() {
  fields_.clear();
  unescaped_.clear();
  line_ = next_line_;
  const std::size_t found = bytes_.find('\n', position_);
  const std::size_t end = std::min(found, bytes_.size());
  std::string_view line = bytes_.substr(position_, end - position_);
  if (quotes_ == CsvQuotes::Quoted && line.find('"') != std::string_view::npos) {
    read_quoted_row();  // a quoted field may hold line breaks, so the line is not the row
    return;
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  split_line(line);
  end_line(found);
}

void CsvRows::split_line(std::string_view line) {
  if (delimiter_.size() == 1) {
    const char delimiter = delimiter_.front();
    const char* start = line.data();
    const char* const stop = start + line.size();
    for (const char* at = start; at != stop; ++at) {
      if (*at != delimiter) continue;
      fields_.emplace_back(start, static_cast<std::size_t>(at - start));
      start = at + 1;
    }
    fields_.emplace_back(start, static_cast<std::size_t>(stop - start));
    return;
  }
  for (std::size_t start = 0;;) {
    const std::size_t found = line.find(delimiter_, start);
    fields_.push_back(line.substr(start, found - start));
    if (found == std::string_view::npos) return;
    start = found + delimiter_.size();
  }
}

// Slower, byte by byte: only for rows with a quote in their first line.
void CsvRows::read_quoted_row() {
  for (;;) {
    if (position_ < bytes_.size() && bytes_[position_] == '"') {
      fields_.push_back(read_quoted_field());
    } else {
      const std::size_t start = position_;
      while (position_ < bytes_.size() && bytes_[position_] != '\n' && !at_delimiter(position_)) {
        ++position_;
      }
      std::string_view field = bytes_.substr(start, position_ - start);
      const bool at_line_end = position_ == bytes_.size() || bytes_[position_] == '\n';
      if (at_line_end && field.ends_with('\r')) field.remove_suffix(1);
      fields_.push_back(field);
    }
    if (position_ < bytes_.size() && at_delimiter(position_)) {
      position_ += delimiter_.size();
      continue;
    }
    end_line(position_ < bytes_.size() ? position_ : std::string_view::npos);
    return;
  }
}

std::string_view CsvRows::read_quoted_field() {
  const std::size_t start = ++position_;
  // unescaped_ must not move its strings: the fields returned earlier point into them.
  std::string* copy = nullptr;  // made at the first doubled quote
  std::size_t piece = start;
  std::string_view field;
  for (;;) {
    const std::size_t quote = bytes_.find('"', position_);
    const std::size_t stop = std::min(quote, bytes_.size());
    // Line numbers of later messages must count the breaks inside of quotes.
    next_line_ += static_cast<std::size_t>(
        std::count(bytes_.begin() + static_cast<std::ptrdiff_t>(position_),
                   bytes_.begin() + static_cast<std::ptrdiff_t>(stop), '\n'));
    const bool doubled = stop + 1 < bytes_.size() && bytes_[stop + 1] == '"';
    if (quote != std::string_view::npos && doubled) {
      if (copy == nullptr) copy = &unescaped_.emplace_back();
      copy->append(bytes_, piece, stop + 1 - piece);
      position_ = piece = stop + 2;
      continue;
    }
    field = bytes_.substr(piece, stop - piece);
    open_quote_ = quote == std::string_view::npos;
    position_ = std::min(stop + 1, bytes_.size());
    break;
  }
  // Whatever follows the closing quote up to the delimiter is dropped: a stray '\r', or blanks.
  while (position_ < bytes_.size() && bytes_[position_] != '\n' && !at_delimiter(position_)) {
    ++position_;
  }
  if (copy == nullptr) return field;
  copy->append(field);
  return *copy;
}

bool CsvRows::at_delimiter(std::size_t position) const noexcept {
  return bytes_.compare(position, delimiter_.size(), delimiter_) == 0;
}

void CsvRows::end_line(std::size_t newline) noexcept {
  terminated_ = newline != std::string_view::npos;
  position_ = terminated_ ? newline + 1 : bytes_.size();
  ++next_line_;
}

std::string_view likely_delimiter(std::string_view line) noexcept {
  if (line.find(kSnowman) != std::string_view::npos) return kSnowman;
  static constexpr std::array<std::string_view, 4> kCandidates{",", "\t", "|", ";"};
  std::string_view best = kCandidates.front();
  std::ptrdiff_t most = 0;
  for (const std::string_view candidate : kCandidates) {
    const auto count = std::ranges::count(line, candidate.front());
    // Strictly more: at a tie the comma, which comes first, wins.
    if (count > most) {
      most = count;
      best = candidate;
    }
  }
  return best;
}

std::string_view without_bom(std::string_view bytes) noexcept {
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  return bytes;
}

std::string_view trimmed(std::string_view text) noexcept {
  static constexpr std::string_view kBlanks = " \t\r\n\v\f";
  // Signed comparison: bytes beyond ASCII take the slow way, which is right for them too.
  if (!text.empty() && text.front() > ' ' && text.back() > ' ') return text;  // nearly always
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace berth
