#include "exec/shim/program.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/shim/refusal.h"

namespace berth {

namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::string_view search_path(const LaunchOrder& order) {
  for (const auto& [name, value] : order.env)
    if (name == "PATH") return value;
  return "/usr/local/bin:/usr/bin:/bin";
}

/// A program that the kernel refused, and the number that says most about it.
struct Refusal {
  std::string file;
  int reason = ENOENT;
};

/// As execvp, with the job's PATH instead of ours.
Refusal try_along_path(const std::string& name, std::string_view path, char* const* words,
                       char* const* environment) {
  Refusal refusal{.file = name};
  for (;;) {
    const auto colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    const std::string file = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    ::execve(file.c_str(), words, environment);
    const int reason = errno;
    // A file that is there and lacks its interpreter is refused as if it were not there.
    const bool is_missing = reason == ENOTDIR || (reason == ENOENT && !is_there(file));
    if (!is_missing && refusal.reason == ENOENT) refusal = {file, reason};
    const bool may_be_elsewhere = reason == ENOENT || reason == ENOTDIR || reason == EACCES;
    if (!may_be_elsewhere || colon == std::string_view::npos) return refusal;
    path.remove_prefix(colon + 1);
  }
}

/// By its name, which is what scripts expect in $0, where its user can read it. Otherwise by a
/// descriptor: a directory on the way is closed to them, and the file is theirs all the same.
Result<std::string> name_of(const ScriptFile& script) {
  if (::access(script.path.c_str(), R_OK) == 0) return script.path;
  if (!script.file.is_open()) return fail_with_errno(script.path, "read the script");
  if (::fcntl(script.file.get(), F_SETFD, 0) != 0)
    return fail_with_errno(script.path, "hand over the script");
  return "/dev/fd/" + std::to_string(script.file.get());
}

Result<void> run_script(const LaunchOrder& order, const ScriptFile& script,
                        char* const* environment) {
  BERTH_TRY(const FirstLine line, first_line_of(order.script));
  std::vector<std::string> words{line.interpreter};
  if (!line.argument.empty()) words.push_back(line.argument);
  BERTH_TRY(words.emplace_back(), name_of(script));
  words.insert(words.end(), order.command.begin(), order.command.end());
  const std::vector<char*> arguments = pointers(words);
  ::execve(line.interpreter.c_str(), arguments.data(), environment);
  const int reason = errno;
  if (reason == E2BIG) return fail("the script" + too_long(arguments.data(), environment));
  return fail("the script wants " + line.interpreter + ", which " +
              why_not_run(line.interpreter, reason));
}

}  // namespace

Result<std::string> write_script(const RunDir& directory, const LaunchOrder& order) {
  const std::string path = directory.script(order.attempt);
  ::unlink(path.c_str());
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400));
  if (!file.is_open()) return fail_with_errno(path, "create the script");
  if (!write_all(file.get(), order.script)) return fail_with_errno(path, "write the script");
  if (::geteuid() == 0 && ::fchown(file.get(), order.uid, order.gid) != 0)
    return fail_with_errno(path, "give the script to its user");
  return path;
}

ScriptFile open_script(const std::string& path) {
  if (path.empty()) return {};
  return {.path = path, .file = Fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC))};
}

Result<void> run_program(const LaunchOrder& order, const ScriptFile& script,
                         std::vector<std::string> environment) {
  const std::vector<char*> variables = pointers(environment);
  if (!script.path.empty()) return run_script(order, script, variables.data());
  std::vector<std::string> words = order.command;
  const std::vector<char*> arguments = pointers(words);
  const std::string& name = order.command.front();
  Refusal refusal{.file = name};
  if (name.find('/') != std::string::npos) {
    ::execve(name.c_str(), arguments.data(), variables.data());
    refusal.reason = errno;
  } else if (!name.empty()) {
    refusal = try_along_path(name, search_path(order), arguments.data(), variables.data());
    if (refusal.reason == ENOENT && !is_there(refusal.file))
      return fail(name + ": no such program in PATH " + std::string(search_path(order)));
  }
  if (refusal.reason == E2BIG) return fail(name + too_long(arguments.data(), variables.data()));
  return fail(refusal.file + ": " + why_not_run(refusal.file, refusal.reason));
}

}  // namespace berth
