// The explicit list of formats: how each is recognised by its content and who reads it. One name
// may stand for several shapes (a table, a JSON file, an older header); the first shape that fits
// reads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/reader.h"
#include "trace/table.h"

namespace berth {

/// What recognition looks at: the beginning of the file, split once.
struct Sample {
  std::string_view bytes;  // all of it, without byte-order mark
  std::string_view first_line;
  std::string_view delimiter;
  std::vector<std::string> header;  // fields of the first line, trimmed, lower case
  std::vector<std::string> row;     // fields of the second line
};

using ReadFunction = Result<Trace> (*)(std::string_view bytes, const std::string& file,
                                       const ReadOptions& options, ReadReport* report);

/// Either a table, recognised by its required columns, or a reader of its own.
struct FormatShape {
  std::string_view name;  // of trace_formats()
  const TableFormat* table = nullptr;
  bool (*fits)(const Sample& sample) = nullptr;  // beyond the columns of a table
  ReadFunction read = nullptr;
};

[[nodiscard]] bool shape_fits(const FormatShape& shape, const Sample& sample);
[[nodiscard]] Result<Trace> read_shape(const FormatShape& shape, std::string_view bytes,
                                       const std::string& file, const ReadOptions& options,
                                       ReadReport* report);

[[nodiscard]] Sample sample_of(std::string_view bytes);
/// In the order in which they are tried.
[[nodiscard]] std::span<const FormatShape> format_shapes() noexcept;

}  // namespace berth
