// Bytes to and from the scheduler: a Unix socket, TCP, or TLS over it. Blocking, with a time-out
// for every read and write. interrupt() may be called from another thread and ends a read under
// way.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "client/endpoint.h"

namespace berth::client {

class Wire {
 public:
  virtual ~Wire() = default;
  [[nodiscard]] virtual Result<void> write(std::string_view bytes) = 0;
  /// At least one byte, or 0 at the end of what the other side has to say.
  [[nodiscard]] virtual Result<std::size_t> read(std::span<char> into) = 0;
  virtual void interrupt() noexcept = 0;
  /// Open, and nothing to read: a kept connection that may take another request. One that has been
  /// closed meanwhile, or on which the other side speaks unasked, may not.
  [[nodiscard]] virtual bool is_quiet() const noexcept = 0;
};

/// The same for the socket below.
[[nodiscard]] bool is_quiet(int socket) noexcept;

/// Why there is none. A scheduler that restarts leaves its socket without a listener, or takes it
/// away for a moment: it may come back.
struct NoWire {
  Error error;
  bool may_come_back = false;
};
[[nodiscard]] tl::expected<std::unique_ptr<Wire>, NoWire> open_wire(
    const Endpoint& endpoint, std::chrono::milliseconds timeout);

/// TLS on a connected socket, which it then owns. The certificate and the host's name are checked.
[[nodiscard]] Result<std::unique_ptr<Wire>> open_tls_wire(int socket, const Endpoint& endpoint);

}  // namespace berth::client
