#include "exec/shim/identity.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <grp.h>
#include <unistd.h>

namespace berth {

namespace {

tl::unexpected<Error> refused(const Identity& identity, const char* step) {
  return fail("cannot run as user " + std::to_string(identity.uid) + ": " + step + ": " +
              std::strerror(errno));
}

bool is_true_of(const Identity& identity) {
  uid_t real = 0, effective = 0, saved = 0;
  gid_t real_group = 0, effective_group = 0, saved_group = 0;
  return ::getresuid(&real, &effective, &saved) == 0 &&
         ::getresgid(&real_group, &effective_group, &saved_group) == 0 && real == identity.uid &&
         effective == identity.uid && saved == identity.uid && real_group == identity.gid &&
         effective_group == identity.gid && saved_group == identity.gid;
}

}  // namespace

Result<void> become_user(const Identity& identity) {
  if (::geteuid() != 0) {
    if (::geteuid() == identity.uid) return {};
    return fail("cannot run as user " + std::to_string(identity.uid) +
                ": the scheduler does not run as root");
  }
  // In this order: without root's rights the first two could not be done any more.
  if (::setgroups(identity.groups.size(), identity.groups.data()) != 0)
    return refused(identity, "its groups");
  if (::setresgid(identity.gid, identity.gid, identity.gid) != 0)
    return refused(identity, "its group");
  if (::setresuid(identity.uid, identity.uid, identity.uid) != 0)
    return refused(identity, "its id");
  if (!is_true_of(identity) || (identity.uid != 0 && ::setuid(0) == 0))
    return fail("cannot run as user " + std::to_string(identity.uid) + ": rights were kept");
  return {};
}

}  // namespace berth
