#include "base/names.h"

#include <cstring>

namespace berth {

namespace {

/// Eight bytes at a time; ids never depend on it, so the byte order of the machine does not matter.
std::uint64_t hash_of(std::string_view text) noexcept {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15ULL;
  std::uint64_t hash = text.size() * kMultiplier;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32U;
  };
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  for (; i < text.size(); ++i) rest = (rest << 8U) | static_cast<unsigned char>(text[i]);
  mix(rest);
  return hash;
}

std::uint32_t tag_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint32_t>(hash >> 32U);
}

}  // namespace

Names::Names() : offsets_{0}, slots_(64) { intern(""); }

std::size_t Names::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    // Linear probing: a free slot ends the search because entries are never removed. The tag (upper
    // hash bits) spares most comparisons of text.
    const Slot& found = slots_[slot];
    if (found.entry == 0) return slot;
    if (found.tag == tag_of(hash) && this->text(NameId{found.entry - 1}) == text) return slot;
  }
}

NameId Names::intern(std::string_view text) {
  const std::uint64_t hash = hash_of(text);
  std::size_t slot = slot_of(text, hash);
  if (slots_[slot].entry != 0) return NameId{slots_[slot].entry - 1};
  // At most half full, so probes stay short and a free slot always exists.
  if (size() * 2 >= slots_.size()) {
    grow();
    slot = slot_of(text, hash);
  }
  const NameId id{static_cast<std::uint32_t>(size())};
  characters_.insert(characters_.end(), text.begin(), text.end());
  offsets_.push_back(characters_.size());
  slots_[slot] = {id.value + 1, tag_of(hash)};
  return id;
}

std::optional<NameId> Names::find(std::string_view text) const {
  const std::uint32_t entry = slots_[slot_of(text, hash_of(text))].entry;
  if (entry == 0) return std::nullopt;
  return NameId{entry - 1};
}

void Names::grow() {
  slots_.assign(slots_.size() * 4, {});
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < size(); ++i) {  // all distinct: only a free slot is needed
    const std::uint64_t hash = hash_of(text(NameId{i}));
    std::size_t slot = hash & mask;
    while (slots_[slot].entry != 0) slot = (slot + 1) & mask;
    slots_[slot] = {i + 1, tag_of(hash)};
  }
}

}  // namespace berth
