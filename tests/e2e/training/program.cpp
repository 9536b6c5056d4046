#include "e2e/training/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "base/check.h"

namespace berth::test {

namespace {

using namespace std::chrono_literals;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

std::string Ended::line(const std::string& prefix) const {
  std::istringstream lines{output};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(prefix)) return line;
  }
  return {};
}

Program::Program(std::vector<std::string> command, const Environment& environment,
                 std::string output)
    : output_(std::move(output)) {
  std::vector<std::string> variables{"PATH=/usr/bin:/bin"};
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const auto words = pointers(command);
  const auto env = pointers(variables);
  pid_ = ::fork();
  BERTH_CHECK(pid_ >= 0, "a test can fork");
  if (pid_ != 0) return;
  const int fd = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  ::execvpe(words[0], words.data(), env.data());
  ::_exit(127);
}

Program::~Program() {
  if (!is_alive()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
}

void Program::signal(int number) const { ::kill(pid_, number); }

bool Program::is_alive() {
  if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

Ended Program::wait() {
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  while (is_alive()) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(2ms);
  }
  std::ifstream in(output_);
  std::ostringstream text;
  text << in.rdbuf();
  return {.exit = WIFEXITED(status_) ? WEXITSTATUS(status_) : -1, .output = text.str()};
}

void OneJob::open() {
  auto opened = TrainingHub::open(
      {.path = file("training.sock")},
      {.expected = [this](JobNumber job) -> std::optional<ExpectedAttempt> {
         const std::lock_guard lock{mutex_};
         if (job != kJob) return std::nullopt;
         return ExpectedAttempt{.token = token_, .uid = ::getuid(), .model = "trainer", .gpus = 1};
       },
       .changed =
           [this](JobNumber, const TrainingFigures&) {
             const std::lock_guard lock{mutex_};
             changed_.notify_all();
           },
       .learned = {}});
  BERTH_CHECK(opened.has_value(), "a hub can listen in a temporary directory");
  hub_ = *std::move(opened);
}

Program::Environment OneJob::begin() {
  const std::lock_guard lock{mutex_};
  token_ = fmt::format("token-{}", ++attempts_);
  return {{"BERTH_JOB_ID", fmt::to_string(kJob)},
          {"BERTH_TRAINING_SOCKET", file("training.sock")},
          {"BERTH_TRAINING_TOKEN", token_}};
}

bool OneJob::wait_until(const std::function<bool(const TrainingFigures&)>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  std::unique_lock lock{mutex_};
  for (;;) {
    lock.unlock();
    const auto figures = hub_->view(kJob);
    lock.lock();
    if (figures && holds(*figures)) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    changed_.wait_for(lock, 20ms);  // news come once a second; the view is newer
  }
}

}  // namespace berth::test
