#include "exec/shim/program.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// As execvp, with the job's PATH instead of ours. Returns the reason that says most.
int try_along_path(const std::string& name, std::string_view path, char* const* words,
                   char* const* environment) {
  int reason = ENOENT;
  for (;;) {
    const auto colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    const std::string file = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    ::execve(file.c_str(), words, environment);
    if (errno != ENOENT && errno != ENOTDIR) reason = errno;
    if (reason != ENOENT && reason != EACCES) return reason;
    if (colon == std::string_view::npos) return reason;
    path.remove_prefix(colon + 1);
  }
}

/// Why a script did not start, from its first line rather than from an error number alone.
std::string script_problem(std::string_view text, int reason) {
  if (!text.starts_with("#!")) return "the script does not begin with #! and a program to run it";
  std::string_view line = text.substr(2, text.find('\n') - 2);
  if (line.ends_with('\r')) return "the script has Windows line ends (run dos2unix on it)";
  while (line.starts_with(' ')) line.remove_prefix(1);
  const std::string program(line.substr(0, line.find_first_of(" \t")));
  if (reason == ENOENT) return "the script wants " + program + ", which does not exist";
  return "the script could not be started by " + program + ": " + std::strerror(reason);
}

Result<void> run_script(const LaunchOrder& order, const std::string& script,
                        char* const* environment) {
  std::vector<std::string> words{script};
  words.insert(words.end(), order.command.begin(), order.command.end());
  ::execve(script.c_str(), pointers(words).data(), environment);
  const int reason = errno;
  if (::access(script.c_str(), X_OK) != 0)
    return fail(script + ": user " + std::to_string(order.uid) +
                " cannot reach the scheduler's run directory: " + std::strerror(errno));
  return fail(script_problem(order.script, reason));
}

}  // namespace

Result<std::string> write_script(const RunDir& directory, const LaunchOrder& order) {
  const std::string path = directory.script(order.attempt);
  ::unlink(path.c_str());
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500));
  if (!file.is_open()) return fail_with_errno(path, "create the script");
  if (!write_all(file.get(), order.script)) return fail_with_errno(path, "write the script");
  if (::geteuid() == 0 && ::fchown(file.get(), order.uid, order.gid) != 0)
    return fail_with_errno(path, "give the script to its user");
  return path;
}

Result<void> run_program(const LaunchOrder& order, const std::string& script,
                         std::vector<std::string> environment) {
  const std::vector<char*> variables = pointers(environment);
  if (!script.empty()) return run_script(order, script, variables.data());
  std::vector<std::string> words = order.command;
  const std::vector<char*> arguments = pointers(words);
  const std::string& name = order.command.front();
  int reason = ENOENT;
  if (name.find('/') != std::string::npos) {
    ::execve(name.c_str(), arguments.data(), variables.data());
    reason = errno;
  } else if (!name.empty()) {
    reason = try_along_path(name, search_path(order), arguments.data(), variables.data());
    if (reason == ENOENT)
      return fail(name + ": no such program in PATH " + std::string(search_path(order)));
  }
  return fail(name + ": cannot be run: " + std::strerror(reason));
}

}  // namespace berth
