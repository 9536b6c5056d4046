// Where the scheduler is and how one is let in: a Unix socket, where the kernel says who asks, or a
// URL with a token. Nothing is connected here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::client {

struct Endpoint {
  std::string socket;  // path; empty: by host and port
  std::string host;
  std::uint16_t port = 0;
  bool is_tls = false;
  std::string ca_file;  // empty: the system's
  std::string token;    // empty: none

  /// For people: "/run/berth/berth.sock", "https://host:8443".
  [[nodiscard]] std::string text() const;
};

/// A variable of the environment; nothing if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] Variables process_variables();

/// Where `berth serve` of a user puts its socket if nobody has set XDG_RUNTIME_DIR (su,
/// containers).
[[nodiscard]] std::string own_socket_without_runtime_dir(std::uint32_t user);

/// `server` is what --server says (a path or a URL), empty if it says nothing. Then BERTH_URL,
/// BERTH_SOCKET, the socket of a scheduler of one's own ($XDG_RUNTIME_DIR/berth/berth.sock) if it
/// is there, the one without that variable if it is there and ours, /run/berth/berth.sock.
[[nodiscard]] Result<Endpoint> find_endpoint(std::string_view server, const Variables& variables);

}  // namespace berth::client
