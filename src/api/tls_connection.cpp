#include "api/connection.h"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <fmt/format.h>

namespace berth::api {

namespace ssl = boost::asio::ssl;
using TlsStream = ssl::stream<Socket>;

template <>
struct StreamKind<TlsStream> {
  static Socket& socket(TlsStream& stream) { return stream.next_layer(); }
  template <class Then>
  static void begin(TlsStream& stream, Then then) {
    stream.async_handshake(TlsStream::server, std::move(then));
  }
  /// Says goodbye; whether the client does too is its business, and the deadline's.
  template <class Then>
  static void end(TlsStream& stream, Then then) {
    stream.async_shutdown([then = std::move(then)](error_code) { then(); });
  }
};

namespace {

class OpenSslContext final : public TlsContext {
 public:
  Result<void> load(const TlsFiles& files) {
    error_code error;
    context_.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                         ssl::context::no_sslv3 | ssl::context::no_tlsv1 |
                         ssl::context::no_tlsv1_1 | ssl::context::single_dh_use);
    ::SSL_CTX_set_options(context_.native_handle(), SSL_OP_NO_RENEGOTIATION);
    context_.use_certificate_chain_file(files.certificate_chain, error);
    if (error) return unusable("certificate", files.certificate_chain, error);
    context_.use_private_key_file(files.private_key, ssl::context::pem, error);
    if (error) return unusable("private key", files.private_key, error);
    if (::SSL_CTX_check_private_key(context_.native_handle()) != 1) {
      return fail(fmt::format("{}: not the key of the certificate {}", files.private_key,
                              files.certificate_chain));
    }
    return {};
  }

  std::shared_ptr<ConnectionBase> make_connection(ServerCore& core, Socket socket,
                                                  Peer peer) override {
    return std::make_shared<Connection<TlsStream>>(core, TlsStream(std::move(socket), context_),
                                                   std::move(peer));
  }

 private:
  static Result<void> unusable(std::string_view what, const std::string& file, error_code error) {
    return fail(fmt::format("{}: cannot be used as a {}: {}", file, what, error.message()));
  }
  ssl::context context_{ssl::context::tls_server};
};

}  // namespace

Result<std::unique_ptr<TlsContext>> load_tls(const TlsFiles& files) {
  auto context = std::make_unique<OpenSslContext>();
  BERTH_TRY_VOID(context->load(files));
  return context;
}

}  // namespace berth::api
