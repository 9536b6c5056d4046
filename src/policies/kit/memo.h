// What a policy knows of each kind of job (or shape, or pool): a row that is made when it is first
// asked for. In an open run kinds come as people submit, so the table grows. Rows keep their
// address.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "base/id.h"

namespace berth {

template <class Key, class T>
class Memo {
 public:
  /// The row of this key; `make` answers a T and is called once.
  template <class Make>
  [[nodiscard]] T& of(Key key, Make&& make) {
    if (key.value >= rows_.size()) rows_.resize(key.value + 1);
    std::optional<T>& row = rows_[key.value];
    if (!row) {
      // Made before it is stored: making it may ask for other rows.
      T made = std::forward<Make>(make)();
      rows_[key.value].emplace(std::move(made));
    }
    return *rows_[key.value];
  }
  /// The same, made empty: for rows that are memos themselves, as those by kind and then by pool.
  [[nodiscard]] T& of(Key key) {
    return of(key, [] { return T{}; });
  }
  [[nodiscard]] T* find(Key key) noexcept {
    return key.value < rows_.size() && rows_[key.value] ? &*rows_[key.value] : nullptr;
  }
  [[nodiscard]] const T* find(Key key) const noexcept {
    return key.value < rows_.size() && rows_[key.value] ? &*rows_[key.value] : nullptr;
  }
  void clear() noexcept { rows_.clear(); }

 private:
  std::deque<std::optional<T>> rows_;
};

}  // namespace berth
