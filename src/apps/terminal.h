// Talking to people and pipes: data to stdout, talk to stderr, `berth: ` before every complaint. A
// reader that goes away (`berth policies | head`) is no failure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

enum class Exit : int { Success = 0, Failure = 1, Misuse = 2 };

/// Each message on a line of its own; answers `code`, so that a command can return it.
[[nodiscard]] Exit complain(Exit code, const Error& error);
[[nodiscard]] Exit complain(Exit code, std::string_view message);
/// A line to stderr, beside the data.
void print_note(std::string_view line);
/// Everything at once; Failure (and a complaint) if standard output takes no more, as on a full
/// disk.
[[nodiscard]] Exit write_stdout(std::string_view text);

[[nodiscard]] bool stderr_is_terminal() noexcept;
[[nodiscard]] bool wants_colour() noexcept;  // a terminal, and neither NO_COLOR nor TERM=dumb

/// Without this a closed pipe ends the process in the middle of its work. Once, before any output.
void ignore_broken_pipes();

}  // namespace berth
