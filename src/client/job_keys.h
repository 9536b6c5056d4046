// KEY=VALUE with the keys of a JobSpec: for `submit --set`, `change` and YAML job files. Values are
// as people write them: a time limit of 2h, memory of 16G, a list joined by commas.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace berth::client {

/// The JSON value of a key given as text; the message does not name the key.
[[nodiscard]] Result<nlohmann::json> value_of_key(std::string_view key, std::string_view text);
/// An object of all of them; every wrong one is told.
[[nodiscard]] Result<nlohmann::json> json_of_settings(std::span<const std::string> settings);
/// "" or a complaint with the nearest key.
[[nodiscard]] std::string complaint_about_key(std::string_view key);

}  // namespace berth::client
