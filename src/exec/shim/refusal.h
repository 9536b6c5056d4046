// Why the kernel would not run a program. Its number alone says "No such file or directory" also of
// a file that is there and lacks its interpreter, and "Permission denied" of a file, of a folder on
// the way to it and of a whole file system alike; a look at the file tells which it was.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

/// The first line of a script as the kernel reads it: a program, and the rest as one argument.
struct FirstLine {
  std::string interpreter;
  std::string argument;  // may be empty
};
/// An error says in words for its author what is wrong with the line. Unlike the kernel's, it may
/// be of any length.
[[nodiscard]] Result<FirstLine> first_line_of(std::string_view script);

[[nodiscard]] bool is_there(const std::string& path);
/// Continues "PATH …": "does not exist", "lies on a file system that is mounted noexec".
[[nodiscard]] std::string why_not_run(const std::string& path, int reason);
/// Continues a name: " is given too much: …".
[[nodiscard]] std::string too_long(char* const* words, char* const* environment);

}  // namespace berth
