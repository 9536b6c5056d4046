#include "apps/embedded_scheduler.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace berth {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
constexpr auto kPatience = 30s;

/// The port of the line that says "ready", or 0 if there is none yet.
std::uint16_t port_in(const std::string& log) {
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.value("message", "") == "ready")
      return json.value("port", std::uint16_t{0});
  }
  return 0;
}

/// Between fork and exec: only what is safe there.
[[noreturn]] void become(const std::vector<char*>& argv, int log, pid_t parent) {
  ::setsid();  // Ctrl-C is for the one who started us, and so is the order of the end
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<EmbeddedScheduler>> EmbeddedScheduler::start(
    const std::vector<std::string>& arguments) {
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "berth-XXXXXX").string();
  if (error || ::mkdtemp(pattern.data()) == nullptr)
    return fail(fmt::format("no temporary directory: {}", std::strerror(errno)));
  auto scheduler = std::unique_ptr<EmbeddedScheduler>(new EmbeddedScheduler(pattern));
  BERTH_TRY_VOID(scheduler->launch(arguments));
  BERTH_TRY_VOID(scheduler->wait_until_ready());
  return scheduler;
}

Result<void> EmbeddedScheduler::launch(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"berth",        "serve",  "--state-dir", directory_ + "/state",
                                 "--socket",     socket(), "--listen",    "127.0.0.1:0",
                                 "--log-format", "json"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int log = ::open(log_path().c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return fail(fmt::format("{}: {}", log_path(), std::strerror(errno)));
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ == 0) become(argv, log, parent);
  ::close(log);
  if (child_ < 0) return fail(fmt::format("cannot start the scheduler: {}", std::strerror(errno)));
  return {};
}

Result<void> EmbeddedScheduler::wait_until_ready() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    port_ = port_in(log_path());
    if (port_ != 0) return {};
    if (::waitpid(child_, nullptr, WNOHANG) == child_) {
      child_ = -1;
      const auto log = read_file(log_path());
      return fail("the scheduler did not start:\n" + (log ? *log : std::string{}));
    }
    std::this_thread::sleep_for(10ms);
  }
  return fail(fmt::format("the scheduler was not ready within {} s", kPatience.count()));
}

EmbeddedScheduler::~EmbeddedScheduler() {
  if (child_ > 0) {
    ::kill(child_, SIGTERM);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (::waitpid(child_, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) ::kill(child_, SIGKILL);
      std::this_thread::sleep_for(10ms);
    }
  }
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

}  // namespace berth
