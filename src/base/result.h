// Result<T>: a value or an Error, for everything a caller could do something about (files, options,
// rows). An Error carries one or more messages of the form "file:line:column: fact (remedy)".
// BERTH_TRY unwraps or returns early. Broken invariants are not errors: see base/check.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace berth {

struct Error {
  std::vector<std::string> messages;  // at least one; a reader reports several before it stops

  Error() = default;
  explicit Error(std::string message) { messages.push_back(std::move(message)); }

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const auto& message : messages) {
      if (!all.empty()) all += '\n';
      all += message;
    }
    return all;
  }
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace berth

#define BERTH_TRY_JOIN_(a, b) a##b
#define BERTH_TRY_NAME_(a, b) BERTH_TRY_JOIN_(a, b)
/// BERTH_TRY(auto value, expression): value of the Result, or return its error to our caller.
#define BERTH_TRY(declaration, expression) \
  BERTH_TRY_IMPL_(BERTH_TRY_NAME_(berth_result_, __LINE__), declaration, expression)
#define BERTH_TRY_IMPL_(result, declaration, expression)                         \
  auto result = (expression);                                                    \
  if (!result) return tl::unexpected<::berth::Error>(std::move(result).error()); \
  declaration = std::move(*result)
/// The same where there is no value to keep.
#define BERTH_TRY_VOID(expression)                                          \
  do {                                                                      \
    if (auto berth_done = (expression); !berth_done)                        \
      return tl::unexpected<::berth::Error>(std::move(berth_done).error()); \
  } while (false)
