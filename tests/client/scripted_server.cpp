#include "client/scripted_server.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth::test {

namespace {

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// One request from the connection; `rest` keeps what came too early.
std::optional<Asked> read_request(int connection, std::string& rest) {
  const auto more = [&] {
    char block[65'536];
    const ssize_t got = ::recv(connection, block, sizeof block, 0);
    if (got <= 0) return false;
    rest.append(block, static_cast<std::size_t>(got));
    return true;
  };
  std::size_t head = 0;
  while ((head = rest.find("\r\n\r\n")) == std::string::npos)
    if (!more()) return std::nullopt;
  Asked asked;
  const std::string text = rest.substr(0, head);
  rest.erase(0, head + 4);
  const auto first = text.find(' '), second = text.find(' ', first + 1);
  asked.method = text.substr(0, first);
  asked.target = text.substr(first + 1, second - first - 1);
  for (std::size_t at = text.find("\r\n"); at != std::string::npos;) {
    const std::size_t end = text.find("\r\n", at + 2);
    const std::string line = text.substr(at + 2, end == std::string::npos ? end : end - at - 2);
    if (const auto colon = line.find(": "); colon != std::string::npos)
      asked.headers[lower(line.substr(0, colon))] = line.substr(colon + 2);
    at = end;
  }
  std::size_t length = 0;
  if (const auto found = asked.headers.find("content-length"); found != asked.headers.end())
    length = std::stoul(found->second);
  while (rest.size() < length)
    if (!more()) return std::nullopt;
  asked.body = rest.substr(0, length);
  rest.erase(0, length);
  return asked;
}

}  // namespace

std::string Asked::parameter(const std::string& name) const {
  const auto question = target.find('?');
  if (question == std::string::npos) return {};
  const std::string query = "&" + target.substr(question + 1) + "&";
  const auto at = query.find("&" + name + "=");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 2;
  const std::string value = query.substr(begin, query.find('&', begin) - begin);
  std::string plain;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '%') {
      plain += value[i];
      continue;
    }
    int byte = 0;
    std::from_chars(value.data() + i + 1, value.data() + i + 3, byte, 16);
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

ScriptedServer::ScriptedServer(std::string socket, Handler handler)
    : socket_(std::move(socket)), handler_(std::move(handler)) {
  int bound = -1;
  if (!socket_.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, sizeof address.sun_path - 1);
    ::unlink(socket_.c_str());
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bound = ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bound = ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  if (bound != 0 || ::listen(listener_, 64) != 0) ADD_FAILURE() << "cannot listen";
  acceptor_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
  is_over_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  {
    const std::lock_guard lock(mutex_);
    for (const int connection : open_) ::shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  if (!socket_.empty()) ::unlink(socket_.c_str());
}

void ScriptedServer::accept_all() {
  while (!is_over_) {
    pollfd ready{listener_, POLLIN, 0};
    ::poll(&ready, 1, 100);
    if (is_over_ || (ready.revents & POLLIN) == 0) continue;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    ++connections_;
    const std::lock_guard lock(mutex_);
    open_.push_back(connection);
    threads_.emplace_back([this, connection] { serve(connection); });
  }
}

void ScriptedServer::serve(int connection) {
  std::string rest;
  while (!is_over_) {
    const auto asked = read_request(connection, rest);
    if (!asked) break;
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(*asked);
    }
    if (!answer(connection, handler_(*asked))) break;
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_, connection);
  ::close(connection);
}

bool ScriptedServer::answer(int connection, const Told& told) const {
  if (!told.raw.empty()) return write_all(connection, told.raw) && false;
  const bool is_chunked = !told.chunks.empty() || told.stream;
  std::string text = fmt::format("HTTP/1.1 {} Some words\r\n", told.status);
  for (const auto& [name, value] : told.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (told.closes) text += "Connection: close\r\n";
  text += is_chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                     : fmt::format("Content-Length: {}\r\n\r\n{}", told.body.size(), told.body);
  for (const std::string& chunk : told.chunks)
    text += fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk);
  if (is_chunked && !told.stream) text += "0\r\n\r\n";
  if (told.cut_after < text.size()) {
    write_all(connection, text.substr(0, told.cut_after));
    return false;
  }
  if (!write_all(connection, text)) return false;
  if (told.stream) {
    told.stream([&](std::string_view piece) {
      if (is_over_) return false;
      char byte = 0;  // a reader that has gone is seen before the next write
      if (::recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) return false;
      return piece.empty() ||
             write_all(connection, fmt::format("{:x}\r\n{}\r\n", piece.size(), piece));
    });
    if (!write_all(connection, "0\r\n\r\n")) return false;
  }
  return !told.closes;
}

std::vector<Asked> ScriptedServer::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

std::vector<Asked> ScriptedServer::asked(const std::string& method, const std::string& path) const {
  std::vector<Asked> some;
  for (const Asked& one : asked())
    if (one.method == method && one.path() == path) some.push_back(one);
  return some;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace berth::test
