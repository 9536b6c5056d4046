#include "step/session_peer.h"

#include <array>
#include <cerrno>

#include <sys/socket.h>

namespace berth::step {

bool SessionPeer::flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

bool SessionPeer::receive() {
  std::array<char, 32U << 10U> block{};
  const ssize_t got = ::recv(socket_.get(), block.data(), block.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  reader_.add({block.data(), static_cast<std::size_t>(got)});
  return true;
}

}  // namespace berth::step
