#include "api/owned_file.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace berth::api {

namespace {

tl::unexpected<Fault> fault(FaultKind kind, std::string message) {
  return tl::unexpected<Fault>(Fault{kind, {std::move(message)}});
}

/// glibc's setgroups() changes every thread; the system call only this one.
bool set_thread_groups(const std::vector<gid_t>& groups) noexcept {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

/// This thread's file accesses are the owner's while it lives. Taking an fsuid other than 0 also
/// drops the capabilities that pass over file permissions, until it is given back.
class AsOwner {
 public:
  explicit AsOwner(const FileOwner& owner) {
    const int count = ::getgroups(0, nullptr);
    groups_.resize(static_cast<std::size_t>(count < 0 ? 0 : count));
    if (::getgroups(static_cast<int>(groups_.size()), groups_.data()) != count) return;
    if (!set_thread_groups(owner.groups)) return;
    has_begun_ = true;
    ::setfsgid(owner.gid);
    ::setfsuid(owner.uid);
    // Both return the value before; an impossible one changes nothing and tells what it is.
    constexpr auto kAsk = static_cast<uid_t>(-1);
    is_taken_ = static_cast<uid_t>(::setfsuid(kAsk)) == owner.uid &&
                static_cast<gid_t>(::setfsgid(kAsk)) == owner.gid;
  }
  AsOwner(const AsOwner&) = delete;
  AsOwner& operator=(const AsOwner&) = delete;
  ~AsOwner() {
    if (!has_begun_) return;
    ::setfsuid(::geteuid());
    ::setfsgid(::getegid());
    BERTH_CHECK(set_thread_groups(groups_), "a thread gets its own identity back");
  }
  [[nodiscard]] bool is_taken() const noexcept { return is_taken_; }

 private:
  std::vector<gid_t> groups_;  // before
  bool has_begun_ = false;
  bool is_taken_ = false;
};

Answer<FileHandle> open_regular(const std::string& path) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  // /proc/self/fd/N would lead past the permissions of directories to what the scheduler has open.
  how.resolve = RESOLVE_NO_MAGICLINKS;
  FileHandle file(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  if (!file.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR)
      return fault(FaultKind::NotFound, "there is no output yet");
    if (errno == ENOSYS)
      return fault(FaultKind::Unavailable, "reading output needs Linux 5.6 or later");
    return fault(FaultKind::Forbidden, "the owner of the job may not read its output file");
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fault(FaultKind::Conflict, "the output is not a regular file");
  return file;
}

}  // namespace

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<FileOwner> file_owner(const std::string& user) {
  std::vector<char> space(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(user.c_str(), &entry, space.data(), space.size(), &found) != 0 ||
      found == nullptr)
    return std::nullopt;
  FileOwner owner{entry.pw_uid, entry.pw_gid, {}};
  int count = 64;
  owner.groups.resize(static_cast<std::size_t>(count));
  while (::getgrouplist(user.c_str(), owner.gid, owner.groups.data(), &count) < 0) {
    if (count > 65'536) return std::nullopt;
    owner.groups.resize(static_cast<std::size_t>(count));
  }
  owner.groups.resize(static_cast<std::size_t>(count));
  return owner;
}

Answer<FileHandle> open_as_owner(const std::string& path, const std::string& user) {
  if (path.empty() || path.front() != '/')
    return fault(FaultKind::NotFound, "there is no output yet");
  if (::geteuid() != 0) return open_regular(path);
  const auto owner = file_owner(user);
  if (!owner)
    return fault(FaultKind::Forbidden, "the user of the job is not known on this machine");
  const AsOwner identity(*owner);
  if (!identity.is_taken())
    return fault(FaultKind::Unavailable, "cannot read with the rights of the job's owner");
  return open_regular(path);
}

}  // namespace berth::api
