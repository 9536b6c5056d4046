// TLS by OpenSSL. Certificates are always verified, with the system's CAs or BERTH_CA_FILE, and the
// name must match: there is no switch to turn that off.

#include <cerrno>
#include <cstring>
#include <limits>
#include <mutex>

#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "client/wire.h"

namespace berth::client {

namespace {

struct Free {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* session) const { ::SSL_free(session); }
};
using Context = std::unique_ptr<SSL_CTX, Free>;
using Session = std::unique_ptr<SSL, Free>;

// OpenSSL reports an end of the connection with an empty queue of errors.
std::string tls_reason() {
  const unsigned long code = ::ERR_get_error();
  if (code == 0) return errno != 0 ? std::strerror(errno) : "the connection was closed";
  char text[256];
  ::ERR_error_string_n(code, text, sizeof text);
  const char* reason = ::ERR_reason_error_string(code);
  return reason != nullptr ? reason : text;
}

class TlsWire final : public Wire {
 public:
  TlsWire(int socket, Context context, Session session)
      : socket_(socket), context_(std::move(context)), session_(std::move(session)) {}
  // The session before its socket.
  ~TlsWire() override {
    session_.reset();
    ::close(socket_);
  }
  TlsWire(const TlsWire&) = delete;
  TlsWire& operator=(const TlsWire&) = delete;

  Result<void> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      std::size_t sent = 0;
      ::ERR_clear_error();
      if (::SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &sent) != 1)
        return fail(tls_reason());
      bytes.remove_prefix(sent);
    }
    return {};
  }
  Result<std::size_t> read(std::span<char> into) override {
    std::size_t got = 0;
    errno = 0;
    ::ERR_clear_error();
    if (::SSL_read_ex(session_.get(), into.data(), into.size(), &got) == 1) return got;
    const int kind = ::SSL_get_error(session_.get(), 0);
    if (kind == SSL_ERROR_ZERO_RETURN) return std::size_t{0};
    if (kind == SSL_ERROR_WANT_READ || errno == EAGAIN) return fail("no answer in time");
    return fail(tls_reason());
  }
  void interrupt() noexcept override { ::shutdown(socket_, SHUT_RDWR); }
  bool is_quiet() const noexcept override { return client::is_quiet(socket_); }

 private:
  int socket_;
  Context context_;
  Session session_;
};

Result<Context> make_context(const Endpoint& endpoint) {
  Context context(::SSL_CTX_new(::TLS_client_method()));
  if (!context) return fail(fmt::format("TLS: {}", tls_reason()));
  ::SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const bool loaded =
      endpoint.ca_file.empty()
          ? ::SSL_CTX_set_default_verify_paths(context.get()) == 1
          : ::SSL_CTX_load_verify_locations(context.get(), endpoint.ca_file.c_str(), nullptr) == 1;
  if (!loaded)
    return fail(
        fmt::format("{}: no certificates to trust in it: {}", endpoint.ca_file, tls_reason()));
  return context;
}

/// The name in the certificate must be the one that was asked for.
bool expect_host(SSL* session, const std::string& host) {
  if (::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(session), host.c_str()) == 1) return true;
  return ::SSL_set1_host(session, host.c_str()) == 1 &&
         ::SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                    const_cast<char*>(host.c_str())) == 1;
}

}  // namespace

// The socket is ours from here on: every way out closes it or hands it over.
Result<std::unique_ptr<Wire>> open_tls_wire(int socket, const Endpoint& endpoint) {
  auto context = make_context(endpoint);
  Session session(context ? ::SSL_new(context->get()) : nullptr);
  if (!session) {
    ::close(socket);
    return context ? fail(fmt::format("TLS: {}", tls_reason())) : tl::unexpected(context.error());
  }
  ::SSL_set_fd(session.get(), socket);
  ::ERR_clear_error();
  errno = 0;
  if (!expect_host(session.get(), endpoint.host) || ::SSL_connect(session.get()) != 1) {
    const long verdict = ::SSL_get_verify_result(session.get());
    const std::string why =
        verdict != X509_V_OK ? ::X509_verify_cert_error_string(verdict) : tls_reason();
    session.reset();
    ::close(socket);
    return fail(fmt::format("{}: {}{}", endpoint.text(), why,
                            verdict != X509_V_OK ? " (name its CA with BERTH_CA_FILE)" : ""));
  }
  return std::make_unique<TlsWire>(socket, *std::move(context), std::move(session));
}

}  // namespace berth::client
