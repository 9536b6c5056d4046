#include "exec/account.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <grp.h>
#include <pwd.h>
#include <sys/types.h>
#include <unistd.h>

namespace berth {

namespace {

std::vector<std::uint32_t> groups_of(const std::string& name, gid_t first) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  while (::getgrouplist(name.c_str(), first, groups.data(), &count) < 0)
    groups.resize(static_cast<std::size_t>(count));
  groups.resize(static_cast<std::size_t>(count));
  return {groups.begin(), groups.end()};
}

/// Whoever runs the scheduler needs no entry to be themselves: containers have users without one.
Account ourselves(const std::string& name) {
  Account account{.name = name, .uid = ::geteuid(), .gid = ::getegid(), .groups = {}};
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, count)));
  if (::getgroups(count, groups.data()) == count) account.groups = {groups.begin(), groups.end()};
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') account.home = home;
  return account;
}

}  // namespace

Result<Account> find_account(const std::string& name) {
  std::vector<char> buffer(1024);
  passwd entry{};
  passwd* found = nullptr;
  int problem = 0;
  while ((problem = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) ==
         ERANGE)
    buffer.resize(buffer.size() * 2);
  if (problem != 0)
    return fail("user " + name + ": cannot be looked up: " + std::strerror(problem));
  if (found == nullptr && name == "uid" + std::to_string(::geteuid())) return ourselves(name);
  if (found == nullptr) return fail("user " + name + " is not known on this machine");
  Account account{.name = name, .uid = entry.pw_uid, .gid = entry.pw_gid, .groups = {}};
  account.groups = groups_of(name, entry.pw_gid);
  if (entry.pw_dir != nullptr && *entry.pw_dir != '\0') account.home = entry.pw_dir;
  if (entry.pw_shell != nullptr && *entry.pw_shell != '\0') account.shell = entry.pw_shell;
  return account;
}

}  // namespace berth
