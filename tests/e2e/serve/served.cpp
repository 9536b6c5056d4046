#include "e2e/serve/served.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exec/process_table.h"

namespace berth::test {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kConfig = "cluster: 1x4\npolicy: fifo-skip\n";

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

std::vector<ProcessRow> shims_below(const std::string& state) {
  std::vector<ProcessRow> shims;
  for (const ProcessRow& row : all_processes()) {
    const std::string words = content_of(fmt::format("/proc/{}/cmdline", row.pid));
    if (row.is_alive() && words.find("berth-shim") != std::string::npos &&
        words.find('\0' + state + "/jobs") != std::string::npos)
      shims.push_back(row);
  }
  return shims;
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kServedPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::map<std::string, int> lines_by_word(const std::string& text) {
  std::map<std::string, int> words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) ++words[line.substr(0, line.find(' '))];
  return words;
}

Served::Served(std::string place) : state_(place.empty() ? folder_ / "state" : std::move(place)) {
  fs::create_directory(folder_ / "out");
  fs::create_directory(folder_ / "locks");
  static_cast<void>(folder_.file("serve.yaml", kConfig));
}

Served::~Served() {
  if (::testing::Test::HasFailure()) fmt::print(stderr, "{}\n", log());
  clean_up();
}

void Served::clean_up() {
  if (daemon_ > 0) kill_now();
  const bool is_clean = eventually([&] {
    const auto shims = shims_below(state_);
    for (const ProcessRow& shim : shims) {
      for (const ProcessRow& process : descendants_of(shim.pid)) send_signal(process, SIGKILL);
    }
    return shims.empty();  // they go by themselves once nobody is below them
  });
  for (const ProcessRow& shim : shims_below(state_)) send_signal(shim, SIGKILL);
  EXPECT_TRUE(is_clean) << "a shim is left";
}

void Served::launch(const Environment& environment) {
  ASSERT_EQ(daemon_, 0);
  const pid_t parent = ::getpid();
  daemon_ = ::fork();
  ASSERT_GE(daemon_, 0);
  if (daemon_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(126);
  const int log = ::open((folder_ / "log").c_str(), O_CREAT | O_APPEND | O_WRONLY, 0600);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (before_ && !before_()) std::_Exit(125);
  const std::string file = config();
  ::execl(BERTH_PROGRAM, BERTH_PROGRAM, "serve", "--config", file.c_str(), "--state-dir",
          state_.c_str(), static_cast<char*>(nullptr));
  std::_Exit(127);
}

bool Served::begin(const Environment& environment) {
  launch(environment);
  return eventually([&] { return !is_alive() || answers(); }) && is_alive();
}

bool Served::is_alive() {
  if (daemon_ == 0) return false;
  int status = 0;
  if (::waitpid(daemon_, &status, WNOHANG) != daemon_) return true;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++crashes_;
  exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  daemon_ = 0;
  return false;
}

void Served::kill_now() {
  if (daemon_ == 0) return;
  ::kill(daemon_, SIGKILL);
  ::waitpid(daemon_, nullptr, 0);
  daemon_ = 0;
}

int Served::stop() {
  if (daemon_ > 0) ::kill(daemon_, SIGTERM);
  EXPECT_TRUE(eventually([&] { return !is_alive(); }));
  return exit_;
}

void Served::hang_up() { ::kill(daemon_, SIGHUP); }

client::Endpoint Served::endpoint() const {
  client::Endpoint endpoint;
  endpoint.socket = socket();
  return endpoint;
}

std::optional<client::HttpReply> Served::ask(const std::string& method, const std::string& target,
                                             const json& body, const std::string& key) const {
  client::HttpClient http{endpoint(), std::chrono::seconds(20)};
  client::HttpRequest request{.method = method, .target = target};
  if (!body.is_null()) {
    request.body = body.dump();
    request.headers.emplace_back("Content-Type", "application/json");
  }
  if (!key.empty()) request.headers.emplace_back("Idempotency-Key", key);
  auto reply = http.send(request);
  if (!reply) return std::nullopt;
  return *std::move(reply);
}

bool Served::answers() {
  const auto reply = ask("GET", "/healthz");
  return reply && reply->status == 200;
}

std::optional<std::uint64_t> Served::submit(const json& spec, const std::string& key) const {
  const auto reply = ask("POST", "/api/v1/jobs", spec, key);
  if (!reply || (reply->status != 201 && reply->status != 200)) return std::nullopt;
  return json::parse(reply->body).at("job").get<std::uint64_t>();
}

std::string Served::state_of(std::uint64_t job) const {
  const auto reply = ask("GET", fmt::format("/api/v1/jobs/{}", job));
  if (!reply) return "?";
  if (reply->status != 200) return fmt::format("{}", reply->status);
  return json::parse(reply->body).at("state").get<std::string>();
}

json Served::view_of(std::uint64_t job) const {
  const auto reply = ask("GET", fmt::format("/api/v1/jobs/{}", job));
  return reply && reply->status == 200 ? json::parse(reply->body) : json{};
}

bool Served::is_over(std::uint64_t job) const {
  const std::string state = state_of(job);
  for (const char* over : {"completed", "failed", "cancelled", "timed-out", "node-failed",
                           "rejected", "out-of-memory"})
    if (state == over) return true;
  return false;
}

std::size_t Served::shims() const { return shims_below(state_).size(); }

json Served::job(const std::string& name, const std::string& seconds, int gpus) const {
  // What is said is appended in one write each; locks go with the last process that has them.
  const std::string script = fmt::format(R"sh(#!/bin/bash
out={0}/out/{1}
say() {{ echo "$1 $$ $(cut -d' ' -f1 /proc/uptime)" >> "$out"; }}
exec 9>> "$out.lock"
flock -n 9 || say TWICE
fd=10
for device in ${{BERTH_DEVICES//,/ }}; do
  eval "exec $fd>> {0}/locks/$device"
  flock -n $fd || say SHARED
  fd=$((fd + 1))
done
say start
sleep {2}
echo output of {1}
say end
)sh",
                                         folder_.path(), name, seconds);
  return json{{"script", script},
              {"name", name},
              {"gpus", gpus},
              {"workdir", folder_.path()},
              {"output", (folder_ / "out/") + name + ".out"},
              {"grace_seconds", 1}};
}

std::string Served::written_by(const std::string& name) const {
  return folder_.read("out/" + name);
}

}  // namespace berth::test
