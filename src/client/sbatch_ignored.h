// Options of sbatch that are understood but cannot be honoured here: each is answered with a note
// that says why and what to do, never passed over in silence.
#pragma once

#include <span>
#include <string_view>

#include "client/options.h"

namespace berth::client {

struct IgnoredOption {
  std::string_view name;
  char letter;
  Takes takes;
  std::string_view instead;
};
[[nodiscard]] std::span<const IgnoredOption> ignored_sbatch_options();

}  // namespace berth::client
