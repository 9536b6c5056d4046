// Unix sockets by directory and name. The kernel takes paths of 107 bytes, run directories can be
// longer: the way leads through a descriptor of the directory.
#pragma once

#include <string>

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace berth::step {

/// Non-blocking; replaces one that is there.
[[nodiscard]] Result<Fd> listen_at(const std::string& directory, const std::string& name);
/// The error number is what connect() said: ENOENT and ECONNREFUSED mean that nobody listens (yet).
[[nodiscard]] tl::expected<Fd, int> connect_at(const std::string& directory,
                                               const std::string& name);
void remove_at(const std::string& directory, const std::string& name);

/// Whether the other end is ours: the same user, or root.
[[nodiscard]] bool is_same_user(int socket);

/// "cannot WHAT: No such file", from errno.
[[nodiscard]] tl::unexpected<Error> fail_by_errno(const std::string& what);
/// Changes a flag; descriptors of ours are never waited for.
void make_nonblocking(int fd);

}  // namespace berth::step
