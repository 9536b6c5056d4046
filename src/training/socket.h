// The few socket calls a hub needs, as values that close themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace berth {

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A listening Unix socket to which everybody on this machine may connect. A file of that name that
/// is a socket is replaced: whoever made it is gone, or it would hold the directory's lock.
[[nodiscard]] Result<Descriptor> listen_on(const std::string& path);

struct Accepted {
  Descriptor socket;
  std::uint32_t uid = 0;  // by the kernel's word
};
/// Nothing: nobody waits, or the one who did has gone.
[[nodiscard]] std::optional<Accepted> accept_from(const Descriptor& listener);

}  // namespace berth
