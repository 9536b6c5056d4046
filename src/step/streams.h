// The streams of a step's tasks on their way to and from srun's own: output line by line, so that
// lines of several tasks do not mix, and input to all of them alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace berth {

/// What one task writes, on its way to a descriptor of ours.
class OutputRelay {
 public:
  /// With a label every line begins with it; `whole_lines`: no part of a line goes out before its
  /// end, unless flush() says so.
  OutputRelay(Fd from, int to, std::string label, bool whole_lines)
      : from_(std::move(from)), to_(to), label_(std::move(label)), whole_lines_(whole_lines) {}

  [[nodiscard]] int fd() const noexcept { return from_.get(); }
  [[nodiscard]] bool is_open() const noexcept { return from_.is_open(); }
  [[nodiscard]] bool has_part() const noexcept { return !part_.empty(); }
  /// Passes on what is there now.
  void pump();
  /// The unfinished line goes out as it is.
  void flush();

 private:
  void put(std::string_view text);

  Fd from_;
  int to_;
  std::string label_;
  bool whole_lines_;
  bool in_line_ = false;  // the label of this line is out already
  std::string part_;      // of a line
};

/// Our standard input, copied to tasks. Reads only as fast as the slowest of them takes it.
class InputFan {
 public:
  /// `to`: write ends, not blocking; closed when the input ends or nobody is left.
  InputFan(int from, std::vector<Fd> to);

  [[nodiscard]] bool wants_input() const noexcept;
  [[nodiscard]] int from() const noexcept { return from_; }
  struct Waiting {
    int fd = -1;
    std::size_t task = 0;
  };
  /// Those that have something left to take.
  [[nodiscard]] std::vector<Waiting> waiting() const;
  void read_more();
  void write_to(std::size_t task);

 private:
  struct Target {
    Fd to;
    std::string rest{};
  };
  void close_done();

  int from_;
  bool is_over_ = false;
  std::vector<Target> targets_;
};

}  // namespace berth
