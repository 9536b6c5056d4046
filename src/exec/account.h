// A user of this machine, as its user database knows them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth {

struct Account {
  std::string name;
  std::uint32_t uid = 0, gid = 0;
  std::vector<std::uint32_t> groups;
  std::string home = "/";
  std::string shell = "/bin/sh";
};

/// "uidN" is whoever runs us, if their number is N and has no name.
[[nodiscard]] Result<Account> find_account(const std::string& name);

}  // namespace berth
