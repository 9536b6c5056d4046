// The checksum of a record in a journal: made of its bytes and of the checksum before it, so that a
// journal is valid up to its first damaged byte and nothing behind that can be taken for good.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/digest.h"

namespace berth {

inline constexpr std::uint64_t kFirstChecksum = 0x6265'7274'6831ULL;  // before the first record

inline void add_bytes(Digest& digest, std::string_view bytes) noexcept {
  digest.add(static_cast<std::uint64_t>(bytes.size()));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < 8 && i + k < bytes.size(); ++k)
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i + k])) << (8 * k);
    digest.add(word);
  }
}

struct JournalEntry {  // a record as it is kept
  std::uint64_t sequence = 0;
  std::int64_t at = 0;
  std::int64_t wall = 0;
  std::string_view kind;
  std::string_view body;
};

[[nodiscard]] inline std::uint64_t chained(std::uint64_t before,
                                           const JournalEntry& entry) noexcept {
  Digest digest;
  digest.add(before);
  digest.add(entry.sequence);
  digest.add(entry.at);
  digest.add(entry.wall);
  add_bytes(digest, entry.kind);
  add_bytes(digest, entry.body);
  return digest.value();
}

}  // namespace berth
