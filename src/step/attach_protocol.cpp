#include "step/attach_protocol.h"

#include <algorithm>

namespace berth::step {

namespace {

constexpr char kVersion = 1;
constexpr std::size_t kMaxTerm = 128;

void put16(std::string& to, std::uint16_t value) {
  to += static_cast<char>(value >> 8U);
  to += static_cast<char>(value & 0xffU);
}
void put32(std::string& to, std::uint32_t value) {
  put16(to, static_cast<std::uint16_t>(value >> 16U));
  put16(to, static_cast<std::uint16_t>(value & 0xffffU));
}
std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

bool is_known(FrameKind kind) {
  return (kind >= FrameKind::Hello && kind <= FrameKind::OutputClosed) ||
         (kind >= FrameKind::Welcome && kind <= FrameKind::Exit);
}

}  // namespace

std::string frame(FrameKind kind, std::string_view payload) {
  std::string bytes;
  bytes.reserve(kFrameHead + payload.size());
  bytes += static_cast<char>(kind);
  put32(bytes, static_cast<std::uint32_t>(payload.size()));
  return bytes.append(payload);
}

void append_frames(std::string& to, FrameKind kind, std::string_view payload) {
  while (!payload.empty()) {
    const std::string_view part = payload.substr(0, kMaxPayload);
    to += frame(kind, part);
    payload.remove_prefix(part.size());
  }
}

Result<std::optional<Frame>> FrameReader::next() {
  if (bytes_.size() < kFrameHead) return std::optional<Frame>{};
  const auto kind = static_cast<FrameKind>(bytes_.front());
  const std::size_t length = number_at(bytes_, 1, 4);
  if (!is_known(kind)) return fail("a frame of an unknown kind");
  if (length > kMaxPayload) return fail("a frame that is too long");
  if (bytes_.size() < kFrameHead + length) return std::optional<Frame>{};
  Frame found{.kind = kind, .payload = bytes_.substr(kFrameHead, length)};
  bytes_.erase(0, kFrameHead + length);
  return std::optional<Frame>(std::move(found));
}

std::string payload_of(const Hello& hello) {
  std::string bytes{kVersion, hello.takes_over ? '\1' : '\0'};
  bytes += payload_of(hello.size);
  return bytes.append(hello.term, 0, kMaxTerm);
}

std::string payload_of(Welcome welcome) { return {kVersion, welcome.is_terminal ? '\1' : '\0'}; }

std::string payload_of(WindowSize size) {
  std::string bytes;
  put16(bytes, size.rows);
  put16(bytes, size.columns);
  return bytes;
}

std::string credit_payload(std::uint32_t bytes) {
  std::string payload;
  put32(payload, bytes);
  return payload;
}

std::optional<Hello> hello_from(std::string_view payload) {
  if (payload.size() < 6 || payload[0] != kVersion || payload.size() > 6 + kMaxTerm)
    return std::nullopt;
  Hello hello;
  hello.takes_over = payload[1] != 0;
  hello.size = *size_from(payload.substr(2, 4));
  hello.term = payload.substr(6);
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!std::ranges::all_of(hello.term, is_plain)) return std::nullopt;
  return hello;
}

std::optional<Welcome> welcome_from(std::string_view payload) {
  if (payload.size() != 2 || payload[0] != kVersion) return std::nullopt;
  return Welcome{.is_terminal = payload[1] != 0};
}

std::optional<WindowSize> size_from(std::string_view payload) {
  if (payload.size() != 4) return std::nullopt;
  return WindowSize{.rows = static_cast<std::uint16_t>(number_at(payload, 0, 2)),
                    .columns = static_cast<std::uint16_t>(number_at(payload, 2, 2))};
}

std::optional<std::uint32_t> credit_from(std::string_view payload) {
  if (payload.size() != 4) return std::nullopt;
  return number_at(payload, 0, 4);
}

std::optional<int> byte_from(std::string_view payload) {
  if (payload.size() != 1) return std::nullopt;
  return static_cast<unsigned char>(payload.front());
}

}  // namespace berth::step
