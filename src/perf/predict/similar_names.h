// Which job names mean the same kind of job: two names are similar if at most four characters in
// ten have to be changed to turn one into the other ("resnet50_lr0.1" and "resnet50_lr0.01").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/names.h"

namespace berth {

/// Insertions, deletions and replacements that turn `a` into `b`; limit + 1 if more than `limit`.
/// O(length * limit).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);
[[nodiscard]] bool are_similar(std::string_view a, std::string_view b);

/// The same for interned names, each pair compared once.
class SimilarNames {
 public:
  explicit SimilarNames(const Names& names) : names_(&names) {}
  [[nodiscard]] bool operator()(NameId a, NameId b);

 private:
  const Names* names_;
  std::unordered_map<std::uint64_t, bool> known_;  // lookup only
};

}  // namespace berth
