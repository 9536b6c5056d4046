// What an option of a submit does to the draft when it only fills in a field: for the tables of our
// own options and of sbatch's.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "client/draft.h"

namespace berth::client {

template <std::string JobSpec::*Field>
[[nodiscard]] Result<void> text(Draft& draft, std::string_view value) {
  draft.spec.*Field = std::string(value);
  return {};
}

template <bool JobSpec::*Field, bool Value>
[[nodiscard]] Result<void> set(Draft& draft, std::string_view) {
  draft.spec.*Field = Value;
  return {};
}

template <bool Draft::*Field>
[[nodiscard]] Result<void> raise(Draft& draft, std::string_view) {
  draft.*Field = true;
  return {};
}

}  // namespace berth::client
