#include "base/names.h"

namespace berth {

namespace {
std::size_t hash_of(std::string_view text) noexcept {
  std::uint64_t h = 0xcbf29ce484222325ULL ^ text.size();
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return static_cast<std::size_t>(h ^ (h >> 29));
}
}  // namespace

Names::Names() : offsets_{0}, slots_(64) { intern(""); }

std::size_t Names::slot_of(std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash_of(text) & mask;; slot = (slot + 1) & mask) {
    const std::uint32_t entry = slots_[slot];
    if (entry == 0 || this->text(NameId{entry - 1}) == text) return slot;
  }
}

NameId Names::intern(std::string_view text) {
  std::size_t slot = slot_of(text);
  if (slots_[slot] != 0) return NameId{slots_[slot] - 1};
  if (size() * 10 >= slots_.size() * 7) {
    grow();
    slot = slot_of(text);
  }
  const NameId id{static_cast<std::uint32_t>(size())};
  characters_.insert(characters_.end(), text.begin(), text.end());
  offsets_.push_back(characters_.size());
  slots_[slot] = id.value + 1;
  return id;
}

std::optional<NameId> Names::find(std::string_view text) const {
  const std::uint32_t entry = slots_[slot_of(text)];
  if (entry == 0) return std::nullopt;
  return NameId{entry - 1};
}

void Names::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const auto count = static_cast<std::uint32_t>(size());
  for (std::uint32_t i = 0; i < count; ++i) slots_[slot_of(text(NameId{i}))] = i + 1;
}

}  // namespace berth
