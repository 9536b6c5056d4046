// What a client and the host of a session say to each other over a Unix socket: frames of a byte
// for their kind, four for their length (most significant first), and the payload. Both ends run on
// one machine, but may be of different versions; neither trusts the other.
//
// Input is sent against credit: the host reads every frame at once and says how much more it can
// keep, so that a signal never waits behind input that the program does not take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::step {

enum class FrameKind : std::uint8_t {
  // From the client.
  Hello = 1,     // first, and only once
  Input,         // for the program
  EndOfInput,    // there is no more
  Resize,        // of the client's terminal: WindowSize
  Signal,        // one byte, its number
  OutputClosed,  // nobody reads it any more; one byte: 1 or 2
  // From the host.
  Welcome = 65,
  Refused,  // why, for people; the last frame
  Output,
  ErrorOutput,
  Credit,  // four bytes: so much more input may come
  Notice,  // a line for people
  Exit,    // one byte, the exit code; the last frame
};

struct Frame {
  FrameKind kind{};
  std::string payload;
};

inline constexpr std::size_t kMaxPayload = 64U << 10U;
inline constexpr std::size_t kFrameHead = 5;
/// Input that may be under way before the host gives credit.
inline constexpr std::uint32_t kFirstCredit = 64U << 10U;

[[nodiscard]] std::string frame(FrameKind kind, std::string_view payload = {});
/// As many frames as it takes.
void append_frames(std::string& to, FrameKind kind, std::string_view payload);

/// Bytes as they come, frames as they are complete.
class FrameReader {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }
  /// Nothing: there is more to come. An error: nobody who speaks this protocol.
  [[nodiscard]] Result<std::optional<Frame>> next();

 private:
  std::string bytes_;
};

struct WindowSize {
  std::uint16_t rows = 0, columns = 0;  // 0: not known
  friend bool operator==(WindowSize, WindowSize) = default;
};

struct Hello {
  bool takes_over = false;  // from whoever is attached now
  WindowSize size{};
  std::string term{};  // TERM; empty: no terminal
};
struct Welcome {
  bool is_terminal = false;  // the program runs on a pseudo-terminal
};

[[nodiscard]] std::string payload_of(const Hello& hello);
[[nodiscard]] std::string payload_of(Welcome welcome);
[[nodiscard]] std::string payload_of(WindowSize size);
[[nodiscard]] std::string credit_payload(std::uint32_t bytes);

// Nothing if it is none.
[[nodiscard]] std::optional<Hello> hello_from(std::string_view payload);
[[nodiscard]] std::optional<Welcome> welcome_from(std::string_view payload);
[[nodiscard]] std::optional<WindowSize> size_from(std::string_view payload);
[[nodiscard]] std::optional<std::uint32_t> credit_from(std::string_view payload);
[[nodiscard]] std::optional<int> byte_from(std::string_view payload);

}  // namespace berth::step
