#include "slurm/setup_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/file.h"

namespace berth::slurm {

namespace {

constexpr std::size_t kMaxPlainFile = std::size_t{64} << 20U;

std::string temporary_of(const std::string& path) { return path + ".berth-new"; }

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Names are durable when their folder is.
Result<void> sync_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return fail_with_errno(folder, "open it");
  // Some file systems cannot sync a folder; there a rename is as durable as it gets.
  if (::fsync(opened.get()) != 0 && errno != EINVAL && errno != EROFS)
    return fail_with_errno(folder, "sync it");
  return {};
}

Result<void> write_synced(const std::string& path, std::string_view text,
                          const Ownership& ownership) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return fail_with_errno(path, "create it");
  struct stat made {};
  if (::fstat(file.get(), &made) != 0) return fail_with_errno(path, "look at it");
  const bool is_owned = made.st_uid == ownership.uid && made.st_gid == ownership.gid;
  if (!is_owned && ::fchown(file.get(), ownership.uid, ownership.gid) != 0)
    return fail_with_errno(path, "give it to its owner");
  if (!write_all(file.get(), text)) return fail_with_errno(path, "write it");
  if (::fchmod(file.get(), ownership.mode) != 0) return fail_with_errno(path, "set its mode");
  if (::fsync(file.get()) != 0) return fail_with_errno(path, "sync it");
  return {};
}

struct DiffLine {
  char kind;  // ' ', '-', '+'
  std::string_view text;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

/// Equal beginnings and ends stay; what is between is taken out and put in. Good enough for files
/// in which one place changed, and its cost does not depend on how much did.
std::vector<DiffLine> compared(std::string_view before, std::string_view after) {
  const auto old_lines = lines_of(before), new_lines = lines_of(after);
  std::size_t head = 0;
  const std::size_t shorter = std::min(old_lines.size(), new_lines.size());
  while (head < shorter && old_lines[head] == new_lines[head]) ++head;
  std::size_t tail = 0;
  while (tail < shorter - head &&
         old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail])
    ++tail;
  std::vector<DiffLine> diff;
  for (std::size_t i = 0; i < head; ++i) diff.push_back({' ', old_lines[i]});
  for (std::size_t i = head; i < old_lines.size() - tail; ++i) diff.push_back({'-', old_lines[i]});
  for (std::size_t i = head; i < new_lines.size() - tail; ++i) diff.push_back({'+', new_lines[i]});
  for (std::size_t i = old_lines.size() - tail; i < old_lines.size(); ++i)
    diff.push_back({' ', old_lines[i]});
  return diff;
}

}  // namespace

Result<std::optional<PlainFile>> read_plain(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open() && errno == ENOENT) return std::nullopt;
  if (!file.is_open() && errno == ELOOP)
    return fail(
        fmt::format("{}: is a symbolic link, and setup changes only plain files (make it one, or "
                    "do by hand what "
                    "--dry-run prints)",
                    path));
  if (!file.is_open()) return fail_with_errno(path, "open it");
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return fail_with_errno(path, "look at it");
  if (!S_ISREG(found.st_mode)) return fail(fmt::format("{}: is no plain file", path));
  PlainFile plain{{}, {found.st_uid, found.st_gid, found.st_mode & 07777U}};
  std::string part(1U << 16U, '\0');
  for (;;) {
    const ssize_t got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_with_errno(path, "read it");
    if (got == 0) return plain;
    plain.text.append(part, 0, static_cast<std::size_t>(got));
    if (plain.text.size() > kMaxPlainFile) return fail(fmt::format("{}: is too large", path));
  }
}

Result<std::optional<std::string>> read_any(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fail_with_errno(path, "look at it");
  }
  if (!S_ISREG(found.st_mode)) return fail(fmt::format("{}: is no plain file", path));
  BERTH_TRY(std::string text, read_file(path, {kMaxPlainFile}));
  return text;
}

Result<void> put_plain(const std::string& path, std::string_view text, const Ownership& ownership) {
  const std::string temporary = temporary_of(path);
  ::unlink(temporary.c_str());
  auto done = write_synced(temporary, text, ownership);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0)
    done = fail_with_errno(path, "put it in place");
  if (!done) {
    ::unlink(temporary.c_str());
    return done;
  }
  return sync_folder(path);
}

Result<void> remove_plain(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_with_errno(path, "remove it");
  return sync_folder(path);
}

Result<void> move_plain(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return fail_with_errno(from, "move it");
  return sync_folder(to);
}

void sweep_temporary(const std::string& path) { ::unlink(temporary_of(path).c_str()); }

Result<void> check_trusted(const std::string& path, const std::vector<std::uint32_t>& trusted) {
  const auto check = [&](const std::string& name, bool is_folder) -> Result<void> {
    struct stat found {};
    if (::lstat(name.c_str(), &found) != 0) {
      if (errno == ENOENT && !is_folder) return {};
      return fail_with_errno(name, "look at it");
    }
    if (std::ranges::find(trusted, found.st_uid) == trusted.end())
      return fail(fmt::format(
          "{}: belongs to user {}, who is neither root, SlurmUser nor you (give it to one of them)",
          name, found.st_uid));
    const bool is_open = (found.st_mode & S_IWOTH) != 0 && (found.st_mode & S_ISVTX) == 0;
    if (is_open) return fail(fmt::format("{}: everybody may write it (chmod o-w)", name));
    return {};
  };
  BERTH_TRY_VOID(check(folder_of(path) + "/.", true));
  return check(path, false);
}

std::string unified_diff(const std::string& path, const std::optional<std::string>& before,
                         const std::optional<std::string>& after) {
  if (before == after) return {};
  constexpr std::size_t kContext = 3;
  // The lines of the comparison are views into these.
  const std::string_view old_text = before ? std::string_view(*before) : std::string_view();
  const std::string_view new_text = after ? std::string_view(*after) : std::string_view();
  const auto diff = compared(old_text, new_text);
  std::size_t first = diff.size(), last = 0;
  for (std::size_t i = 0; i < diff.size(); ++i) {
    if (diff[i].kind == ' ') continue;
    first = std::min(first, i);
    last = i + 1;
  }
  std::string text =
      fmt::format("--- {}\n+++ {}\n", before ? path : "/dev/null", after ? path : "/dev/null");
  if (first >= last) return text;  // an empty file comes or goes
  const std::size_t begin = first - std::min(first, kContext);
  const std::size_t end = std::min(last + kContext, diff.size());
  std::size_t olds = 0, news = 0;
  std::string body;
  for (std::size_t i = begin; i < end; ++i) {
    olds += diff[i].kind != '+' ? 1U : 0U;
    news += diff[i].kind != '-' ? 1U : 0U;
    body += diff[i].kind;
    body += diff[i].text;
    if (!body.ends_with('\n')) body += "\n\\ No newline at end of file\n";
  }
  // A side without lines begins at 0, as diff has it.
  return text +
         fmt::format("@@ -{},{} +{},{} @@\n", olds == 0 ? begin : begin + 1, olds,
                     news == 0 ? begin : begin + 1, news) +
         body;
}

}  // namespace berth::slurm
