// What `--cpu` and `--power` take, for the help: the modes, and the options of the one that has
// any.
#pragma once

#include <string>

namespace berth {

[[nodiscard]] std::string cpu_help();
[[nodiscard]] std::string power_help();

}  // namespace berth
