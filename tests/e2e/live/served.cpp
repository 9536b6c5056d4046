#include "e2e/live/served.h"

#include <csignal>
#include <sstream>

#include <sys/wait.h>

#include <gtest/gtest.h>

namespace berth::test {

namespace {

std::uint16_t port_in(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto said = nlohmann::json::parse(line, nullptr, false);
    if (said.is_object() && said.value("message", "") == "ready")
      return said.value("port", std::uint16_t{0});
  }
  return 0;
}

}  // namespace

Served::Served(const std::vector<std::string>& arguments) {
  words_ = {"serve",    "--state-dir", folder_ / "state", "--socket", folder_ / "s",
            "--listen", "127.0.0.1:0", "--cluster",       "1x4:cpu",  "--log-format",
            "json"};
  words_.insert(words_.end(), arguments.begin(), arguments.end());
  start();
}

void Served::start() {
  child_ = start_berth(folder_, words_);
  const bool is_up = eventually([&] {
    port_ = port_in(folder_.read("err") + folder_.read("out"));
    return port_ != 0;
  });
  EXPECT_TRUE(is_up) << folder_.read("err");
}

void Served::kill() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

Served::~Served() {
  static_cast<void>(run("cancel --state pending,running,held,starting"));
  static_cast<void>(
      eventually([&] { return run("queue").out.find("no jobs") != std::string::npos; }, 20));
  ::kill(child_, SIGTERM);
  ::waitpid(child_, nullptr, 0);
}

Ran Served::run(const std::string& arguments) const {
  return shell(folder_, "BERTH_SOCKET='" + (folder_ / "s") + "' $BERTH " + arguments);
}

}  // namespace berth::test
