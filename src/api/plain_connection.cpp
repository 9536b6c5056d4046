#include "api/connection.h"

namespace berth::api {

template <>
struct StreamKind<Socket> {
  static Socket& socket(Socket& stream) { return stream; }
  template <class Then>
  static void begin(Socket&, Then then) {
    then(error_code{});
  }
  template <class Then>
  static void end(Socket& stream, Then then) {
    error_code ignored;
    stream.shutdown(Socket::shutdown_send, ignored);
    then();
  }
};

std::shared_ptr<ConnectionBase> make_plain_connection(ServerCore& core, Socket socket, Peer peer) {
  return std::make_shared<Connection<Socket>>(core, std::move(socket), std::move(peer));
}

}  // namespace berth::api
