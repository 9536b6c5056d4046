// Where the scheduler is: an option, then variables, then the usual sockets. Tokens come from a
// variable or from a private file, and are never sent in the clear beyond this machine unless the
// user insists.

#include "client/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"

namespace berth::client {

namespace {

constexpr std::uint16_t kDefaultPort = 8471;
constexpr auto kSystemSocket = "/run/berth/berth.sock";

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

/// In a folder that everybody may write to, what is there need not be ours.
bool is_socket_of_mine(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && info.st_uid == ::geteuid();
}

// Names that cannot leave the machine; anything else may be a stranger's network.
bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// The kernel would cut a longer path, and another socket might be there.
Result<Endpoint> at_socket(std::string path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(fmt::format("{}: longer than the path of a socket may be", path));
  Endpoint endpoint;
  endpoint.socket = std::move(path);
  return endpoint;
}

/// A token in a file that others can read is no secret any more.
Result<std::string> read_token_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return fail(fmt::format("{}: {}", path, std::strerror(errno)));
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return fail(fmt::format("{}: others may read this token (chmod 600 {})", path, path));
  BERTH_TRY(std::string token, read_file(path, {.max_bytes = 65'536}));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r' || token.back() == ' '))
    token.pop_back();
  return token;
}

// The first that is there counts, also if it is empty: a variable can switch a token off.
Result<std::string> find_token(const Variables& variables) {
  std::string token;
  if (const auto given = variables("BERTH_TOKEN")) {
    token = *given;
  } else if (const auto file = variables("BERTH_TOKEN_FILE")) {
    BERTH_TRY(token, read_token_file(*file));
  } else {
    std::string folder;
    if (const auto config = variables("XDG_CONFIG_HOME"); config && !config->empty())
      folder = *config;
    else if (const auto home = variables("HOME"); home && !home->empty())
      folder = *home + "/.config";
    const std::string path = folder + "/berth/token";
    if (!folder.empty() && exists(path)) {
      BERTH_TRY(token, read_token_file(path));
    }
  }
  // It becomes a header line: a line break in it would add headers.
  const bool is_plain = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 127; });
  if (!is_plain) return fail("the token contains blanks or control characters (copy it again)");
  return token;
}

Result<Endpoint> at_url(std::string_view url, const Variables& variables) {
  Endpoint endpoint;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    endpoint.is_tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return fail(fmt::format("'{}' is no address (http://host:port or https://host:port)", url));
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view port;
  // An IPv6 address has colons of its own: brackets tell where it ends.
  if (rest.starts_with('[')) {
    const auto close = rest.find(']');
    endpoint.host = std::string(rest.substr(1, close == rest.npos ? close : close - 1));
    if (close != rest.npos && rest.substr(close + 1).starts_with(':'))
      port = rest.substr(close + 2);
  } else {
    const auto colon = rest.find(':');
    endpoint.host = std::string(rest.substr(0, colon));
    if (colon != rest.npos) port = rest.substr(colon + 1);
  }
  endpoint.port = kDefaultPort;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  const bool is_port = port.empty() || (error == std::errc{} && end == port.data() + port.size() &&
                                        endpoint.port != 0);
  const bool is_host = !endpoint.host.empty() && std::ranges::all_of(endpoint.host, [](char c) {
    return c > ' ' && c < 127 && c != '/' && c != '@' && c != '?' && c != '#';
  });
  if (!is_port || !is_host)
    return fail(fmt::format("'{}' is no address (http://host:port or https://host:port)", url));
  BERTH_TRY(endpoint.token, find_token(variables));
  if (!endpoint.is_tls && !endpoint.token.empty() && !is_loopback(endpoint.host) &&
      variables("BERTH_ALLOW_PLAIN") != "1") {
    return fail(
        fmt::format("{} would send the token in the clear: use https://, a tunnel, or set "
                    "BERTH_ALLOW_PLAIN=1",
                    url));
  }
  endpoint.ca_file = variables("BERTH_CA_FILE").value_or("");
  return endpoint;
}

Result<Endpoint> at(std::string_view server, const Variables& variables) {
  if (server.starts_with("unix:")) server.remove_prefix(5);
  if (server.find("://") != std::string_view::npos) return at_url(server, variables);
  return at_socket(std::string(server));
}

}  // namespace

std::string Endpoint::text() const {
  if (!socket.empty()) return socket;
  const bool is_six = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", is_tls ? "https" : "http", is_six ? "[" : "", host,
                     is_six ? "]" : "", port);
}

Variables process_variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

std::string own_socket_without_runtime_dir(std::uint32_t user) {
  return fmt::format("/tmp/berth-{}/berth/berth.sock", user);
}

// What a user says counts first; then one's own scheduler, then the machine's.
Result<Endpoint> find_endpoint(std::string_view server, const Variables& variables) {
  if (!server.empty()) return at(server, variables);
  if (const auto url = variables("BERTH_URL"); url && !url->empty()) return at(*url, variables);
  if (const auto socket = variables("BERTH_SOCKET"); socket && !socket->empty())
    return at_socket(*socket);
  if (const auto runtime = variables("XDG_RUNTIME_DIR"); runtime && !runtime->empty()) {
    const std::string folder = *runtime + "/berth";
    std::string own = folder + "/berth.sock";
    // While one's own scheduler restarts its socket is away for a moment, but its folder is there.
    if (exists(own) || (exists(folder) && !exists(std::string(kSystemSocket))))
      return at_socket(std::move(own));
  }
  if (std::string own = own_socket_without_runtime_dir(::geteuid()); is_socket_of_mine(own))
    return at_socket(std::move(own));
  return at_socket(kSystemSocket);
}

}  // namespace berth::client
