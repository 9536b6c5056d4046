#include "exec/shim/refusal.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "exec/run_dir.h"

namespace berth {

namespace {

constexpr const char* kBlank = " \t";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
}

/// As much as is needed of a file that may be of any size.
std::string beginning_of(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char part[4096];
  const ssize_t got = file.is_open() ? ::read(file.get(), part, sizeof part) : 0;
  return std::string(part, got > 0 ? static_cast<std::size_t>(got) : 0);
}

/// A word of a file that may hold anything, for a line that people read.
std::string shown(std::string word) {
  for (char& c : word)
    if (c < ' ' || c > '~') c = '?';
  return word;
}

/// A file that is there, whose interpreter the kernel would not have.
std::string interpreter_problem(const std::string& path, int reason) {
  const std::string begins = beginning_of(path);
  if (begins.starts_with("#!")) {
    const auto line = first_line_of(begins);
    if (!line) return "cannot be run: " + line.error().text();
    return "wants " + shown(line->interpreter) + ", which " +
           (is_there(line->interpreter) ? std::strerror(reason) : "does not exist");
  }
  if (begins.starts_with("\x7f"
                         "ELF"))
    return "wants a loader that does not exist (it was built for another system)";
  return std::string("cannot be run: ") + std::strerror(reason);
}

std::string permission_problem(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return std::string("cannot be reached: ") + std::strerror(errno);
  if (S_ISDIR(found.st_mode)) return "is a directory";
  if (!S_ISREG(found.st_mode)) return "is not a program";
  if ((found.st_mode & 0111U) == 0) return "is not executable (chmod +x it)";
  struct statvfs system {};
  if (::statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0)
    return "lies on a file system that is mounted noexec";
  if (::access(path.c_str(), X_OK) != 0) return "may not be run by this user";
  const auto line = first_line_of(beginning_of(path));
  if (line && ::access(line->interpreter.c_str(), X_OK) != 0)
    return "wants " + shown(line->interpreter) + ", which " + permission_problem(line->interpreter);
  return std::string("cannot be run: ") + std::strerror(EACCES);
}

struct Extent {
  std::size_t all = 0, longest = 0;
};
Extent extent_of(char* const* words) {
  Extent extent;
  for (; *words != nullptr; ++words) {
    const std::size_t bytes = std::strlen(*words) + 1;
    extent.all += bytes + sizeof *words;
    extent.longest = std::max(extent.longest, bytes);
  }
  return extent;
}

}  // namespace

Result<FirstLine> first_line_of(std::string_view script) {
  if (script.starts_with("\x7f"
                         "ELF"))
    return fail("the script is a program (submit it as a command)");
  if (!script.starts_with("#!"))
    return fail("the script does not begin with #! and a program to run it");
  std::string_view line = script.substr(2, script.find('\n') - 2);
  if (line.find('\0') != std::string_view::npos)
    return fail("the script's first line holds a zero byte");
  if (line.ends_with('\r')) return fail("the script has Windows line ends (run dos2unix on it)");
  line = trimmed(line);
  if (line.empty()) return fail("the script's first line names no program after #!");
  const auto end = line.find_first_of(kBlank);
  FirstLine found{.interpreter = std::string(line.substr(0, end)), .argument = {}};
  if (end != std::string_view::npos) found.argument = trimmed(line.substr(end));
  return found;
}

bool is_there(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0;
}

std::string why_not_run(const std::string& path, int reason) {
  switch (reason) {
    case ENOENT: return is_there(path) ? interpreter_problem(path, reason) : "does not exist";
    case EACCES: return permission_problem(path);
    case ENOEXEC: return "is neither a program for this machine nor a script with a #! line";
    default: return std::string("cannot be run: ") + std::strerror(reason);
  }
}

std::string too_long(char* const* words, char* const* environment) {
  const Extent arguments = extent_of(words), variables = extent_of(environment);
  return " is given too much: " + std::to_string(arguments.all) + " bytes of arguments and " +
         std::to_string(variables.all) + " of environment, the longest one " +
         std::to_string(std::max(arguments.longest, variables.longest)) +
         " (the kernel takes 131072 bytes in one, and a quarter of the stack's limit in all)";
}

}  // namespace berth
