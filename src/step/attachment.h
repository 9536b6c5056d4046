// The client's end of a session: our terminal, or our standard streams, attached to a program that
// runs in a job. On a terminal every key goes there; without one, end of input and signals are
// passed on, and the first Ctrl-C only says what a second one does. A terminal that goes away (its
// window is closed, its ssh breaks) is no end of input: we leave, and the session goes on. The
// terminal is as it was before whatever ends this, short of SIGKILL.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace berth::step {

/// What becomes of our standard input.
enum class InputUse : std::uint8_t {
  PassedOn,
  Ended,  // the program finds the end of its input at once
  /// Only watching: neither input nor its end, signals, sizes or a closed output reach the program.
  Withheld,
};

struct AttachOptions {
  std::string program = "srun";  // stands before what is told to people
  std::string what = "job";      // "job 12"
  bool takes_over = false;
  bool quits_on_interrupt = false;  // the first Ctrl-C ends it
  InputUse input = InputUse::PassedOn;
};

struct AttachEnd {
  enum class Kind : std::uint8_t {
    Exited,   // `code` is the program's
    Refused,  // by the host; `text` says why
    Lost,     // the host is gone
    Left,     // a signal or a lost terminal made us go; the session goes on. `code` is 128 + it
  };
  Kind kind = Kind::Lost;
  int code = 0;
  std::string text{};
};

/// Until either end goes. Blocks the signals it hears of while it runs.
[[nodiscard]] AttachEnd attach(Fd socket, const AttachOptions& options);

}  // namespace berth::step
