#include "exec/claim.h"

#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/boot_clock.h"
#include "exec/fields.h"
#include "exec/process_table.h"

namespace berth {

namespace {

std::string claim_text(Claimant by) {
  const auto self = process_row(::getpid());
  std::string text = std::string(by == Claimant::Shim ? "shim" : "nobody") + " " + boot_id() + " " +
                     std::to_string(::getpid()) + " " + std::to_string(self ? self->start : 0) +
                     "\n";
  if (by == Claimant::Nobody || !self) return text;
  const auto guard = process_row(self->parent);
  return text + "guard " + std::to_string(self->parent) + " " +
         std::to_string(guard ? guard->start : 0) + "\n";
}

bool lock(int fd) noexcept {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_SETLK, &whole) == 0;
}

/// A file without a name, or with one of our own where the file system knows no such thing.
struct Unnamed {
  Fd file;
  std::string path;       // to link from
  bool is_named = false;  // path must go
};

Unnamed make_unnamed(const RunDir& directory, AttemptId attempt) {
  Unnamed made;
  made.file.reset(::open(directory.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (made.file.is_open()) {
    made.path = "/proc/self/fd/" + std::to_string(made.file.get());
    return made;
  }
  made.path = directory.claim(attempt) + "." + std::to_string(::getpid());
  made.is_named = true;
  made.file.reset(
      ::open(made.path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600));
  return made;
}

std::string_view next_word(std::string_view& text) {
  const auto end = text.find_first_of(" \n");
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

}  // namespace

Result<Fd> try_claim(const RunDir& directory, AttemptId attempt, Claimant by) {
  const std::string path = directory.claim(attempt);
  // Most losers need no file: they see at once that they are late.
  if (::access(path.c_str(), F_OK) == 0) return Fd{};
  Unnamed made = make_unnamed(directory, attempt);
  if (!made.file.is_open()) return fail_with_errno(made.path, "create it");
  const bool is_ready = write_all(made.file.get(), claim_text(by)) &&
                        (by == Claimant::Nobody || lock(made.file.get()));
  const int linked =
      !is_ready ? -1
                : ::linkat(AT_FDCWD, made.path.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW);
  const int problem = errno;
  if (made.is_named) ::unlink(made.path.c_str());
  errno = problem;
  if (linked != 0 && is_ready && problem == EEXIST) return Fd{};
  if (linked != 0) return fail_with_errno(path, "claim it");
  // Both syncs before anything is done in the claim's name. After a power loss in between there may
  // be a name without content: nobody holds it, so the attempt counts as lost.
  if (::fsync(made.file.get()) != 0) return fail_with_errno(path, "sync it");
  BERTH_TRY_VOID(directory.sync());
  return std::move(made.file);
}

void note_job(const Fd& claim, pid_t job) noexcept {
  static_cast<void>(write_all(claim.get(), "job " + std::to_string(job) + "\n"));
}

Result<std::optional<Claim>> read_claim(const RunDir& directory, AttemptId attempt) {
  BERTH_TRY(const auto bytes, get_file(directory.claim(attempt)));
  if (!bytes) return std::nullopt;
  Claim claim;
  std::string_view text(*bytes);
  if (next_word(text) == "nobody") claim.by = Claimant::Nobody;
  claim.boot_id = next_word(text);
  claim.shim = static_cast<pid_t>(integer_of(next_word(text)).value_or(0));
  claim.shim_start = static_cast<std::uint64_t>(integer_of(next_word(text)).value_or(0));
  std::string_view next = next_word(text);
  if (next == "guard") {
    claim.guard = static_cast<pid_t>(integer_of(next_word(text)).value_or(0));
    claim.guard_start = static_cast<std::uint64_t>(integer_of(next_word(text)).value_or(0));
    next = next_word(text);
  }
  if (next == "job" && text.ends_with('\n'))
    claim.job = static_cast<pid_t>(integer_of(next_word(text)).value_or(0));
  return claim;
}

std::optional<pid_t> holder_of(const RunDir& directory, AttemptId attempt) {
  const Fd file(::open(directory.claim(attempt).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  struct flock held {};
  held.l_type = F_WRLCK;
  held.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_GETLK, &held) != 0 || held.l_type == F_UNLCK) return std::nullopt;
  return held.l_pid;
}

}  // namespace berth
