// Collects what is wrong with what was typed and goes on, so that one call reports everything.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/result.h"

namespace berth {

class Complaints {
 public:
  template <class T>
  T value_or(Result<T> result, T instead) {
    if (result) return std::move(*result);
    add(result.error());
    return instead;
  }
  void check(const Result<void>& result) {
    if (!result) add(result.error());
  }
  void add(const Error& error) {
    for (const std::string& message : error.messages) {  // several policies may say the same
      if (std::ranges::find(all_.messages, message) == all_.messages.end())
        all_.messages.push_back(message);
    }
  }
  [[nodiscard]] bool any() const noexcept { return !all_.messages.empty(); }
  [[nodiscard]] tl::unexpected<Error> take() { return tl::unexpected<Error>(std::move(all_)); }

 private:
  Error all_;
};

}  // namespace berth
