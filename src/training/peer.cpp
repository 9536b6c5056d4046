#include "training/peer.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

namespace berth {

Peer::State Peer::read(double now, std::vector<std::string>& lines) {
  std::array<char, 16U << 10U> bytes;
  const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? State::Open : State::Closed;
  if (got == 0) return State::Closed;
  in_.append(bytes.data(), static_cast<std::size_t>(got));
  if (now - second_began_ >= 1) {
    second_began_ = now;
    lines_this_second_ = 0;
  }
  std::size_t begin = 0;
  for (std::size_t end = in_.find('\n'); end != std::string::npos; end = in_.find('\n', begin)) {
    if (++lines_this_second_ > limits_.lines_per_second) {
      broken_limit_ = fmt::format("more than {} lines in a second", limits_.lines_per_second);
      return State::Closed;
    }
    if (end > begin) lines.push_back(in_.substr(begin, end - begin));
    begin = end + 1;
  }
  in_.erase(0, begin);
  if (in_.size() <= limits_.line_bytes) return State::Open;
  broken_limit_ = fmt::format("a line of more than {} bytes", limits_.line_bytes);
  return State::Closed;
}

Peer::State Peer::send(const std::string& text) {
  if (out_.size() + text.size() > limits_.unread_bytes) return State::Closed;
  out_ += text;
  return flush();
}

Peer::State Peer::flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR ? State::Open : State::Closed;
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  return State::Open;
}

}  // namespace berth
