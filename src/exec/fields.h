// Named values in a file, each with its length, closed by a checksum: what scheduler and shim leave
// for each other. Any bytes fit into a value. A file that was cut or damaged is an error, never a
// wrong value; names that the reader does not know are from a newer version and are skipped.
//   berth-exit 1
//   job 2:17
//   …
//   sum 16:0123456789abcdef
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

class FieldWriter {
 public:
  explicit FieldWriter(std::string_view kind);
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::int64_t value);
  /// The whole file.
  [[nodiscard]] std::string finish() &&;

 private:
  std::string out_;
};

struct Field {
  std::string_view name, value;  // into the bytes that were read
};

/// The fields of a file of this kind, in order.
[[nodiscard]] Result<std::vector<Field>> read_fields(std::string_view bytes, std::string_view kind);

[[nodiscard]] std::optional<std::int64_t> integer_of(std::string_view text) noexcept;

}  // namespace berth
