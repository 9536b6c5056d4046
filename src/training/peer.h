// One connection of training code: whole lines in, lines out, both bounded. It never blocks;
// whoever does not read what it is told, or never ends a line, is dropped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/job_spec.h"
#include "training/socket.h"

namespace berth {

struct PeerLimits {
  std::size_t line_bytes = 16U << 10U;
  std::size_t unread_bytes = 64U << 10U;  // told, but not read by the peer
  std::int32_t lines_per_second = 200;    // well-behaved code sends ten
  std::int32_t wrong_lines = 100;         // in all
};

class Peer {
 public:
  Peer(Accepted accepted, double now, PeerLimits limits)
      : uid(accepted.uid),
        since(now),
        socket_(std::move(accepted.socket)),
        limits_(limits),
        second_began_(now) {}

  const std::uint32_t uid;
  const double since;
  JobNumber job = 0;     // 0: has not said hello
  std::uint64_t id = 0;  // of the hub
  std::int32_t rank = 0;
  bool resizes = false;
  std::string token{};  // of the attempt it speaks for
  std::int32_t wrong_lines = 0;
  std::uint32_t interest = 0;  // what the poller was told to watch

  enum class State : std::uint8_t { Open, Closed };
  /// Reads what is there, at most once, and cuts it into lines. Closed: it has gone, or broke a
  /// limit.
  [[nodiscard]] State read(double now, std::vector<std::string>& lines);
  /// Queues and sends as much as fits.
  [[nodiscard]] State send(const std::string& text);
  [[nodiscard]] State flush();
  /// Which limit it broke, for people; empty: none.
  [[nodiscard]] const std::string& broken_limit() const noexcept { return broken_limit_; }
  [[nodiscard]] bool has_more_to_say() const noexcept { return !out_.empty(); }
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

 private:
  Descriptor socket_;
  PeerLimits limits_;
  std::string in_;
  std::string out_;
  double second_began_;
  std::int32_t lines_this_second_ = 0;
  std::string broken_limit_;
};

}  // namespace berth
