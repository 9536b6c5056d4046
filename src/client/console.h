// Standard output and error of a command: data to the one, talk to the other. A reader that goes
// away (`berth queue | head`) is no failure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/terminal_text.h"

namespace berth::client {

/// Exit codes of our own commands; `wait` and `submit --wait` pass on that of the job.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kMisuse = 2;
inline constexpr int kNever = 3;  // `why`: no state of this cluster could start it

class Console {
 public:
  /// `program` stands before every complaint.
  explicit Console(std::string program);

  /// False when nobody reads any more, or nothing can be written; what_went_wrong() then tells.
  bool put(std::string_view text);
  /// JSON with its line break: exact, but nothing in it commands a terminal.
  bool put_json(std::string_view json) { return put(harmless_json(json) + "\n"); }
  void note(std::string_view line) const;
  /// Every message on its line; answers `code`.
  int complain(int code, const Error& error) const;
  int complain(int code, std::string_view message) const;
  /// The exit of a command that has put everything it had.
  [[nodiscard]] int done() const;

  [[nodiscard]] bool is_terminal() const noexcept { return is_terminal_; }
  [[nodiscard]] bool has_colour() const noexcept { return has_colour_; }
  [[nodiscard]] int width() const;  // columns of the terminal; 0: no terminal
  [[nodiscard]] const std::string& program() const noexcept { return program_; }

 private:
  std::string program_;
  bool is_terminal_ = false;
  bool has_colour_ = false;
  bool is_gone_ = false;     // the reader
  std::string write_error_;  // of another kind
};

}  // namespace berth::client
