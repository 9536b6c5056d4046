// The terminal as a screen of one's own: keys without echo, an alternate screen, everything put
// back at the end, also after SIGINT, SIGTERM or SIGHUP and around SIGTSTP. One at a time in a
// process.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <termios.h>

#include "base/result.h"

namespace berth::client {

enum class Key : unsigned char {
  None,
  Character,
  Up,
  Down,
  PageUp,
  PageDown,
  Enter,
  Escape,
  Backspace
};

struct Input {
  enum class Kind : unsigned char { Nothing, Key, Resized, Woken, Ended } kind = Kind::Nothing;
  Key key = Key::None;
  char character = 0;
};

class Screen {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Screen>> open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::vector<std::string>& lines);
  /// The next key, a wake(), a new size, or nothing in that time.
  [[nodiscard]] Input wait(std::chrono::milliseconds timeout);
  /// Safe from any thread.
  void wake() const noexcept;
  [[nodiscard]] int width() const;
  [[nodiscard]] int height() const;

 private:
  Screen() = default;
  void enter();
  void leave();
  [[nodiscard]] std::optional<Input> from_signals();
  [[nodiscard]] std::optional<Input> key_from_bytes();

  termios before_{};
  bool is_inside_ = false;
  int wake_[2] = {-1, -1};
  std::string bytes_;  // typed and not yet understood
  std::string last_;   // drawn
};

}  // namespace berth::client
