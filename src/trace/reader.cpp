// From bytes to a trace: is it text, which shape fits, read it. When nothing fits the message
// depends on how near the file comes to our own CSV.

#include "trace/reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "base/suggest.h"
#include "trace/csv.h"
#include "trace/formats.h"
#include "trace/tables.h"
#include "trace/trace_builder.h"

namespace berth {

namespace {

bool is_binary(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 && c != '\n' && c != '\r' && c != '\t';
}

// The first control character other than tabs and line ends, or the size. Whole blocks are judged
// without leaving the loop, which lets the compiler look at many bytes at once.
std::size_t find_binary(std::string_view bytes) noexcept {
  constexpr std::size_t kBlock = 4096;
  std::size_t place = 0;
  for (; place + kBlock <= bytes.size(); place += kBlock) {
    unsigned found = 0;
    for (std::size_t i = 0; i < kBlock; ++i) found |= is_binary(bytes[place + i]) ? 1U : 0U;
    if (found != 0) break;
  }
  const std::string_view rest = bytes.substr(place);
  return place + static_cast<std::size_t>(std::ranges::find_if(rest, is_binary) - rest.begin());
}

Result<void> check_is_text(std::string_view bytes, const std::string& name) {
  const std::size_t place = find_binary(bytes);
  if (place == bytes.size()) return {};
  const auto line = std::ranges::count(bytes.substr(0, place), '\n') + 1;
  return fail(fmt::format(
      "{}:{}:1: holds a byte 0x{:02X}, so it is not a text file (name a CSV or JSON trace)", name,
      line, static_cast<unsigned>(static_cast<unsigned char>(bytes[place]))));
}

std::string_view canonical_format(std::string_view name) noexcept {
  if (name == "pollux") return "sia";
  if (name == "venus") return "helios";
  if (name == "csv" || name == "berth") return "native";
  return name;
}

Result<void> check_is_known(std::string_view format) {
  std::vector<std::string> known;
  for (const FormatInfo& info : trace_formats()) known.push_back(info.name);
  if (std::ranges::find(known, format) != known.end()) return {};
  return fail(
      fmt::format("trace format {} is not known{}", in_quotes(format), suggestion(format, known)));
}

// With half of our columns there, naming the missing ones helps; with fewer it is another file.
bool resembles_native(const Sample& sample) {
  const auto is_ours = [&sample](const TableColumn& column) {
    return column.presence == Presence::Required &&
           std::ranges::find(sample.header, column.name) != sample.header.end();
  };
  return std::ranges::count_if(tables::kNative.columns, is_ours) >= 2;
}

std::string no_known_format(const std::string& name, const Sample& sample) {
  if (sample.delimiter == "|") {
    return fmt::format(
        "{}:1:1: is not a trace in a known format (from sacct? Keep its header: sacct -P without "
        "-n)",
        name);
  }
  std::string known;
  for (const FormatInfo& info : trace_formats()) known += (known.empty() ? "" : ", ") + info.name;
  return fmt::format(
      "{}:1:1: is not a trace in a known format (a CSV needs the columns job_id, submit_time, gpus "
      "and duration; other formats: {})",
      name, known);
}

}  // namespace

Result<Trace> parse_trace(std::string_view bytes, const std::string& name,
                          const ReadOptions& options, ReadReport* report) {
  if (report != nullptr) *report = {};
  const std::string_view format = canonical_format(options.format);
  if (!format.empty()) BERTH_TRY_VOID(check_is_known(format));
  bytes = without_bom(bytes);
  BERTH_TRY_VOID(check_is_text(bytes, name));
  if (trimmed(bytes).empty())
    return fail(fmt::format("{}:1:1: holds no jobs (the file is empty)", name));

  const Sample sample = sample_of(bytes);
  for (const FormatShape& shape : format_shapes()) {
    if (!format.empty() && shape.name != format) continue;
    if (shape_fits(shape, sample)) return read_shape(shape, bytes, name, options, report);
  }
  if (format.empty() && !resembles_native(sample)) return fail(no_known_format(name, sample));
  if (format.empty() || format == "native") {
    return read_table(bytes, name, tables::kNative, options,
                      report);  // says which columns are missing
  }
  // Only if another shape fits: otherwise leaving --format out would not help either.
  const bool fits_another = std::ranges::any_of(
      format_shapes(), [&sample](const FormatShape& shape) { return shape_fits(shape, sample); });
  return fail(
      fmt::format("{}:1:1: does not look like a {} trace ({}docs/formats/traces.md says how "
                  "one looks)",
                  name, format, fits_another ? "leave out --format to have it recognised; " : ""));
}

Result<Trace> read_trace(const std::string& path, const ReadOptions& options, ReadReport* report) {
  BERTH_TRY(const std::string bytes, read_file(path));
  return parse_trace(bytes, path, options, report);
}

}  // namespace berth
