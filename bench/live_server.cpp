#include "live_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace berth::bench {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

}  // namespace

void give_up(const std::string& why) {
  std::fprintf(stderr, "live_bench: %s\n", why.c_str());
  std::exit(1);
}

LiveServer::LiveServer(std::string directory, std::vector<std::string> arguments)
    : directory_(std::move(directory)) {
  std::filesystem::create_directories(directory_);
  const std::string config = directory_ + "/serve.yaml";
  std::ofstream(config) << "max_requests_per_second: 0\n";  // all clients are one caller here
  std::vector<std::string> words{
      BERTH_PROGRAM,         "serve",    "--config", config,        "--state-dir",
      directory_ + "/state", "--socket", socket(),   "--log-level", "warn"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log = directory_ + "/serve.log";
  const auto begin = Clock::now();
  child_ = ::fork();
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // whatever becomes of the benchmark
    const int file = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  while (!answers()) {
    if (::waitpid(child_, nullptr, WNOHANG) == child_) give_up("berth serve ended: see " + log);
    if (Clock::now() - begin > 120s) give_up("berth serve does not answer");
    std::this_thread::sleep_for(1ms);
  }
}

void LiveServer::stop() {
  if (child_ <= 0) return;
  ::kill(child_, SIGTERM);
  ::waitpid(child_, nullptr, 0);
  child_ = -1;
}

client::Endpoint LiveServer::endpoint() const {
  client::Endpoint endpoint;
  endpoint.socket = socket();
  return endpoint;
}

bool LiveServer::answers() const {
  client::HttpClient http{endpoint()};
  const auto reply = http.send(get("/api/v1/cluster"));
  return reply && reply->status == 200;
}

double LiveServer::cpu_seconds() const {
  std::ifstream file(fmt::format("/proc/{}/stat", child_));
  std::string text;
  std::getline(file, text);
  text.erase(0, text.rfind(')') + 2);  // from the third field on
  long user = 0, system = 0;
  if (std::sscanf(text.c_str(), "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
                  &system) != 2)
    give_up("/proc/PID/stat cannot be read");
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double LiveServer::resident_mib() const {
  std::ifstream file(fmt::format("/proc/{}/status", child_));
  for (std::string word; file >> word;)
    if (double kib = 0; word == "VmRSS:" && file >> kib) return kib / 1024;
  give_up("/proc/PID/status cannot be read");
}

std::string ask(client::HttpClient& http, const client::HttpRequest& request) {
  auto reply = http.send(request);
  if (!reply) give_up(request.target + ": " + reply.error().text());
  if (reply->status / 100 != 2)
    give_up(fmt::format("{}: {} {}", request.target, reply->status, reply->body));
  return std::move(reply->body);
}

client::HttpRequest get(const std::string& path) { return {.method = "GET", .target = path}; }

client::HttpRequest post(const std::string& path, std::string body) {
  return {.method = "POST",
          .target = path,
          .body = std::move(body),
          .headers = {{"Content-Type", "application/json"}}};
}

}  // namespace berth::bench
