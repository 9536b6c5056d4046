#include "daemon/machine_users.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace berth {

namespace {

constexpr std::chrono::minutes kKept{1};
constexpr std::size_t kMostKept = 10'000;  // names come from outside
constexpr std::uint32_t kNobody = 65'534;
constexpr std::uint32_t kUsualFirstUser = 1000;

std::vector<gid_t> group_numbers(const std::string& name, gid_t first) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  while (::getgrouplist(name.c_str(), first, groups.data(), &count) < 0)
    groups.resize(static_cast<std::size_t>(count));
  groups.resize(static_cast<std::size_t>(count));
  return groups;
}

/// A number without a name is no group one could write in a table.
std::optional<std::string> group_name(gid_t number) {
  std::vector<char> buffer(4096);
  group entry{};
  group* found = nullptr;
  int problem = 0;
  while ((problem = ::getgrgid_r(number, &entry, buffer.data(), buffer.size(), &found)) == ERANGE)
    buffer.resize(buffer.size() * 2);
  if (problem != 0 || found == nullptr) return std::nullopt;
  return std::string(entry.gr_name);
}

}  // namespace

Result<std::optional<MachineUser>> find_machine_user(const std::string& name) {
  std::vector<char> buffer(4096);
  passwd entry{};
  passwd* found = nullptr;
  int problem = 0;
  while ((problem = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) ==
         ERANGE)
    buffer.resize(buffer.size() * 2);
  // What POSIX lets a database say of a name it does not have.
  const bool is_absent =
      problem == ENOENT || problem == ESRCH || problem == EBADF || problem == EPERM;
  if (problem != 0 && !is_absent)
    return fail(fmt::format("user {}: cannot be looked up: {}", name, std::strerror(problem)));
  if (found == nullptr) return std::optional<MachineUser>{};
  MachineUser user{.uid = entry.pw_uid};
  user.primary_group = group_name(entry.pw_gid).value_or("");
  for (const gid_t number : group_numbers(name, entry.pw_gid)) {
    if (auto group = group_name(number)) user.groups.push_back(*std::move(group));
  }
  return std::optional(std::move(user));
}

std::uint32_t first_user_number(const std::string& login_defs) {
  std::ifstream file(login_defs);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint32_t number = 0;
    if (words >> key >> number && key == "UID_MIN") return number;
  }
  return kUsualFirstUser;
}

MachineUsers::MachineUsers(UserLookup lookup)
    : lookup_(lookup ? std::move(lookup) : UserLookup(find_machine_user)),
      first_user_(first_user_number()) {}

Result<std::optional<MachineUser>> MachineUsers::find(const std::string& name) {
  const auto now = Clock::now();
  {
    const std::lock_guard lock{mutex_};
    const auto known = known_.find(name);
    if (known != known_.end() && now - known->second.asked < kKept) return known->second.user;
  }
  BERTH_TRY(auto user, lookup_(name));
  const std::lock_guard lock{mutex_};
  if (known_.size() >= kMostKept) known_.clear();
  known_[name] = Known{user, now};
  return user;
}

bool MachineUsers::is_system(std::uint32_t uid) const noexcept {
  return uid < first_user_ || uid == kNobody;
}

}  // namespace berth
