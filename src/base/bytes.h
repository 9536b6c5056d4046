// Values as bytes and back, for what a program writes for itself: integers by length (small ones
// take one byte), reals to the last bit, texts with their length. No names, no versions: whoever
// reads knows what was written, and in which order.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace berth {

class ByteWriter {
 public:
  void natural(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) bytes_ += static_cast<char>((value & 0x7fU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  void integer(std::int64_t value) {
    natural((static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void flag(bool value) { bytes_ += value ? '\1' : '\0'; }
  void real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned i = 0; i < 64; i += 8) bytes_ += static_cast<char>(bits >> i & 0xffU);
  }
  void text(std::string_view value) {
    natural(value.size());
    bytes_ += value;
  }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  /// Forgets what was written after that size.
  void cut(std::size_t size) { bytes_.resize(size); }
  [[nodiscard]] std::string take() {
    std::string taken;
    taken.swap(bytes_);
    return taken;
  }

 private:
  std::string bytes_;
};

/// Throws std::runtime_error where the bytes end before the value does.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] std::uint64_t natural() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(next(1).front());
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    throw std::runtime_error("a number of more than 64 bits");
  }
  [[nodiscard]] std::int64_t integer() {
    const std::uint64_t value = natural();
    return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1U));
  }
  [[nodiscard]] bool flag() { return next(1).front() != '\0'; }
  [[nodiscard]] double real() {
    std::uint64_t bits = 0;
    const std::string_view bytes = next(8);
    for (unsigned i = 0; i < 8; ++i)
      bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return std::bit_cast<double>(bits);
  }
  [[nodiscard]] std::string_view text() {
    const std::uint64_t size = natural();
    if (size > rest_.size()) throw std::runtime_error("bytes end inside a text");
    return next(static_cast<std::size_t>(size));
  }
  [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }

 private:
  [[nodiscard]] std::string_view next(std::size_t size) {
    if (size > rest_.size()) throw std::runtime_error("bytes end before their time");
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }
  std::string_view rest_;
};

}  // namespace berth
