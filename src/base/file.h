// Whole files, in and out. Reading unpacks .gz by content, not by name. Writing goes to a temporary
// name first and is renamed when complete, so that nobody ever sees half a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

struct ReadLimits {
  std::size_t max_bytes = std::size_t{8} << 30U;  // after unpacking
};

[[nodiscard]] Result<std::string> read_file(const std::string& path, ReadLimits limits = {});
/// Unpacks if `bytes` is gzip, otherwise hands them back. `name` is for messages.
[[nodiscard]] Result<std::string> unpack_if_gzip(std::string bytes, const std::string& name,
                                                 ReadLimits limits = {});
/// Puts a whole new file in its place. What is no plain file (/dev/null, a pipe) is written to
/// where it is, and a link stays a link.
[[nodiscard]] Result<void> write_file(const std::string& path, std::string_view content);

}  // namespace berth
