// Interned strings. A trace of a million jobs repeats the same users and models; each distinct text
// is stored once in one block of characters and named by a NameId. Ids are handed out in order of
// first use, so they are deterministic. The empty string is always NameId{0}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"

namespace berth {

class Names {
 public:
  Names();
  NameId intern(std::string_view text);
  [[nodiscard]] std::optional<NameId> find(std::string_view text) const;
  [[nodiscard]] std::string_view text(NameId id) const {
    return {characters_.data() + offsets_[id.value], offsets_[id.value + 1] - offsets_[id.value]};
  }
  [[nodiscard]] std::size_t size() const noexcept { return offsets_.size() - 1; }

 private:
  struct Slot {
    std::uint32_t entry = 0;  // id + 1; 0 = free
    std::uint32_t tag =
        0;  // part of the hash: most strangers are told apart without looking at their text
  };
  [[nodiscard]] std::size_t slot_of(std::string_view text,
                                    std::uint64_t hash) const;  // its slot, or the free one
  void grow();

  std::vector<char> characters_;
  std::vector<std::size_t> offsets_;
  std::vector<Slot> slots_;  // open addressing, at most half full
};

}  // namespace berth
