// Which policies were asked for on the command line, and which of the settings reaches which.
#pragma once

#include <string>
#include <vector>

#include "base/params.h"
#include "base/result.h"

namespace berth {

/// "a,b" or "all" as names of the registry, no name twice.
[[nodiscard]] Result<std::vector<std::string>> policy_list(const std::string& text);
/// Which settings go to which policy. KEY=VALUE reaches every policy that has the key;
/// POLICY.KEY=VALUE that one. A key that nobody has is an error.
[[nodiscard]] Result<std::vector<Settings>> route_settings(const std::vector<std::string>& policies,
                                                           const std::vector<std::string>& texts);

}  // namespace berth
