// Becoming somebody else for good: groups, group, user, and a look whether it is true.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace berth {

struct Identity {
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> groups;
};

/// Where we are not root there is nobody to become: being that user already is enough.
[[nodiscard]] Result<void> become_user(const Identity& identity);

}  // namespace berth
