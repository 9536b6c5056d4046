// A 64-bit digest of a stream of integers and strings: the fingerprint of an action log. Equal logs
// give equal digests on every machine; it is no protection against someone who wants a collision.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

class Digest {
 public:
  void add(std::uint64_t word) noexcept {
    state_ = (state_ ^ mix(word + kStep * ++count_)) * 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 32;
  }
  void add(std::int64_t word) noexcept { add(static_cast<std::uint64_t>(word)); }
  void add(std::string_view text) noexcept {
    add(static_cast<std::uint64_t>(text.size()));
    for (const char c : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return mix(state_); }
  [[nodiscard]] std::string hex() const;

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t state_ = 0x6a09e667f3bcc909ULL;
  std::uint64_t count_ = 0;
};

}  // namespace berth
