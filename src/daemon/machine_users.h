// The users of this machine as its user database knows them: number and groups by name. Answers are
// kept for a minute, because a network's directory is slow and every submit asks. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth {

struct MachineUser {
  std::uint32_t uid = 0;
  std::string primary_group{};
  std::vector<std::string> groups{};  // the primary one among them
};

/// Nothing: there is no such user. An error: the database does not answer.
using UserLookup = std::function<Result<std::optional<MachineUser>>(const std::string&)>;

/// As getpwnam and getgrouplist say.
[[nodiscard]] Result<std::optional<MachineUser>> find_machine_user(const std::string& name);

/// Below this number accounts belong to the system: UID_MIN of the file, 1000 if it says nothing.
[[nodiscard]] std::uint32_t first_user_number(const std::string& login_defs = "/etc/login.defs");

class MachineUsers {
 public:
  explicit MachineUsers(UserLookup lookup);
  [[nodiscard]] Result<std::optional<MachineUser>> find(const std::string& name);
  /// Root, daemons, nobody: accounts that are nobody's own.
  [[nodiscard]] bool is_system(std::uint32_t uid) const noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    std::optional<MachineUser> user;
    Clock::time_point asked;
  };
  const UserLookup lookup_;
  const std::uint32_t first_user_ = 1000;
  std::mutex mutex_;
  std::map<std::string, Known> known_;
};

}  // namespace berth
