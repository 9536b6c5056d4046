#include "api/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace berth::testing {

RawClient RawClient::tcp(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  RawClient client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no connection");
  return client;
}

RawClient RawClient::unix_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  RawClient client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(client.descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no connection");
  return client;
}

RawClient::RawClient(RawClient&& other) noexcept
    : patience(other.patience),
      descriptor_(std::exchange(other.descriptor_, -1)),
      unread_(std::move(other.unread_)) {}

RawClient& RawClient::operator=(RawClient&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(unread_, other.unread_);
  return *this;
}

RawClient::~RawClient() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void RawClient::end_sending() { ::shutdown(descriptor_, SHUT_WR); }

void RawClient::shrink_receive_buffer() {
  const int bytes = 4'096;
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

bool RawClient::read_more() {
  pollfd waiting{descriptor_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return false;
  std::array<char, 65'536> bytes{};
  const ssize_t count = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  unread_.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

std::optional<std::string> RawClient::take(std::size_t count) {
  while (unread_.size() < count) {
    if (!read_more()) return std::nullopt;
  }
  std::string taken = unread_.substr(0, count);
  unread_.erase(0, count);
  return taken;
}

std::optional<std::string> RawClient::take_line() {
  std::string line = read_until("\r\n");
  if (line.empty()) return std::nullopt;
  line.resize(line.size() - 2);
  return line;
}

std::string RawClient::read_until(std::string_view text) {
  while (true) {
    if (const auto at = unread_.find(text); at != std::string::npos) return *take(at + text.size());
    if (!read_more()) return {};
  }
}

bool RawClient::is_closed_by_peer() {
  while (true) {
    pollfd waiting{descriptor_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return false;
    std::array<char, 65'536> bytes{};
    if (::recv(descriptor_, bytes.data(), bytes.size(), 0) <= 0) return true;
  }
}

std::optional<RawAnswer> RawClient::read_answer(Body body) {
  RawAnswer answer;
  const auto status = take_line();
  if (!status || !status->starts_with("HTTP/1.1 ")) return std::nullopt;
  answer.status = std::stoi(status->substr(9, 3));
  while (true) {
    const auto line = take_line();
    if (!line) return std::nullopt;
    if (line->empty()) break;
    const auto colon = line->find(": ");
    std::string name = line->substr(0, colon);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    answer.headers[name] = line->substr(colon + 2);
  }
  if (body == Body::None || answer.status == 204 || answer.status == 100) return answer;
  if (answer.header("transfer-encoding") == "chunked") {
    while (true) {
      const auto size = take_line();
      if (!size) return std::nullopt;
      const auto chunk = take(std::stoul(*size, nullptr, 16) + 2);
      if (!chunk) return std::nullopt;
      if (chunk->size() == 2) return answer;
      answer.body += chunk->substr(0, chunk->size() - 2);
    }
  }
  const std::string length = answer.header("content-length");
  if (length.empty()) {  // until the end
    while (read_more()) {
    }
    answer.body = std::exchange(unread_, {});
    return answer;
  }
  auto text = take(std::stoul(length));
  if (!text) return std::nullopt;
  answer.body = *std::move(text);
  return answer;
}

}  // namespace berth::testing
