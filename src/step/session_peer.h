// A client's connection as the host of a session has it: bytes in, frames out, nothing waits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "step/attach_protocol.h"

namespace berth::step {

class SessionPeer {
 public:
  SessionPeer(Fd socket, std::int64_t now) : socket_(std::move(socket)), since_(now) {}

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] std::int64_t since() const noexcept { return since_; }
  [[nodiscard]] bool has_output() const noexcept { return !out_.empty(); }
  /// It takes what we have too slowly to be given more.
  [[nodiscard]] bool is_behind() const noexcept { return out_.size() > kMostBehind; }

  void send(FrameKind kind, std::string_view payload = {}) { out_ += frame(kind, payload); }
  void send_all(FrameKind kind, std::string_view payload) { append_frames(out_, kind, payload); }
  /// As much as the socket takes. False: it is gone.
  [[nodiscard]] bool flush();
  /// What has come. False: it is gone.
  [[nodiscard]] bool receive();
  [[nodiscard]] Result<std::optional<Frame>> next() { return reader_.next(); }

 private:
  static constexpr std::size_t kMostBehind = 256U << 10U;

  Fd socket_;
  std::int64_t since_;
  FrameReader reader_;
  std::string out_;
};

}  // namespace berth::step
