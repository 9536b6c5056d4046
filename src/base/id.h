// Strong ids and the column that is indexed by one. An id is a small integer that names a row; a
// JobId never compares with or converts to a NodeId. Column is a vector that accepts only its own
// id, so a table of columns cannot be read with the wrong key.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace berth {

template <class Tag>
struct Id {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(Id, Id) = default;
};

using JobId = Id<struct JobTag>;
using NodeId = Id<struct NodeTag>;
using PoolId = Id<struct PoolTag>;  // all devices of one type
using NameId = Id<struct NameTag>;  // an interned string
using RackId = Id<struct RackTag>;

template <class Key, class T>
class Column {
 public:
  Column() = default;
  explicit Column(std::size_t size, T fill = T{}) : rows_(size, fill) {}

  [[nodiscard]] auto operator[](Key key) -> decltype(auto) {
    BERTH_DCHECK(key.value < rows_.size(), "column read past its end");
    return rows_[key.value];
  }
  [[nodiscard]] auto operator[](Key key) const -> decltype(auto) {
    BERTH_DCHECK(key.value < rows_.size(), "column read past its end");
    return rows_[key.value];
  }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
  void reserve(std::size_t size) { rows_.reserve(size); }
  void resize(std::size_t size, T fill = T{}) { rows_.resize(size, fill); }
  void push_back(T row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] auto begin() const noexcept { return rows_.begin(); }
  [[nodiscard]] auto end() const noexcept { return rows_.end(); }
  [[nodiscard]] const std::vector<T>& raw() const noexcept { return rows_; }

 private:
  std::vector<T> rows_;
};

}  // namespace berth

template <class Tag>
struct std::hash<berth::Id<Tag>> {
  std::size_t operator()(berth::Id<Tag> id) const noexcept { return id.value; }
};
