// How a server comes and goes: sockets left behind, sockets in use, answers under way.
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>

#include "api/server_fixture.h"

namespace berth {
namespace {

using testing::RawClient;

class Life : public testing::ServerTest {};

TEST_F(Life, ASocketLeftBehindIsReplaced) {
  {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options_.unix_path->copy(address.sun_path, sizeof address.sun_path - 1);
    const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(left);  // the path stays, as after kill -9
  }
  start();
  EXPECT_EQ(local().ask(request("GET", "/healthz", "")).value().status, 200);
  server_->stop();
  EXPECT_FALSE(std::filesystem::exists(*options_.unix_path));
  server_->stop();
}

// A scheduler is killed while it makes a process: that one has its sockets until it is another
// program.
TEST_F(Life, AProcessThatWasBeingMadeIsWaitedFor) {
  start();
  const pid_t copy = ::fork();
  if (copy == 0) {
    ::usleep(200'000);
    ::_exit(0);
  }
  server_->stop();
  api::ServerOptions second = options_;
  second.tcp.reset();
  api::Server next{service_, second};
  const auto bound = next.start();
  EXPECT_TRUE(bound) << bound.error().text();
  if (bound) next.stop();
  ::waitpid(copy, nullptr, 0);
}

TEST_F(Life, ALivingServerIsNotPushedAside) {
  start();
  api::ServerOptions second = options_;
  second.tcp.reset();
  const auto bound = api::Server(service_, second).start();
  ASSERT_FALSE(bound);
  EXPECT_NE(bound.error().text().find("another scheduler"), std::string::npos);
  EXPECT_EQ(local().ask(request("GET", "/healthz", "")).value().status, 200);
}

TEST_F(Life, WhatCannotBeBoundIsSaidClearly) {
  const auto error_of = [&](const api::ServerOptions& options) {
    const auto bound = api::Server(service_, options).start();
    return bound ? std::string("it started") : bound.error().text();
  };
  const std::filesystem::path file = folder_ / "file";
  std::ofstream(file) << "precious";
  EXPECT_NE(error_of({.unix_path = file.string()}).find("no socket"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_NE(error_of({.unix_path = "relative"}).find("absolute"), std::string::npos);
  EXPECT_NE(error_of({.unix_path = "/" + std::string(200, 'x')}).find("at most"),
            std::string::npos);
  EXPECT_NE(error_of({.unix_path = (folder_ / "no" / "x").string()}).find("No such"),
            std::string::npos);
  EXPECT_NE(error_of({.tcp = api::TcpAddress{"localhost", 0}}).find("not an address"),
            std::string::npos);
  EXPECT_NE(error_of({.tcp = api::TcpAddress{"0.0.0.0", 0}}).find("readable"), std::string::npos)
      << "because tokens do not travel in the clear unless somebody says so";
  EXPECT_NE(error_of({}).find("nothing to listen on"), std::string::npos);
  start();
  EXPECT_NE(error_of({.tcp = api::TcpAddress{"127.0.0.1", bound_.port}}).find("in use"),
            std::string::npos);
}

TEST_F(Life, AnswersUnderWayAreFinished) {
  start();
  service_.hold_commits(true);
  RawClient client = tcp();
  RawClient idle = tcp();
  EXPECT_EQ(idle.ask(request("GET", "/healthz", "")).value().status, 200);
  client.send(request("POST", "/api/v1/jobs", "alice", R"({"command":["true"]})"));
  EXPECT_TRUE(comes_true([&] {
    return !service_.questions().empty() && service_.questions().back().what == "submit";
  }));
  auto stopped = std::async(std::launch::async, [&] { server_->stop(); });
  EXPECT_TRUE(idle.is_closed_by_peer());
  service_.hold_commits(false);
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->header("connection"), "close");
  client.end_sending();
  stopped.get();
}

TEST_F(Life, StreamsAreEndedProperly) {
  start();
  RawClient events = tcp();
  events.send(request("GET", "/api/v1/events", "alice"));
  EXPECT_TRUE(comes_true([&] { return service_.subscribers() == 1; }));
  auto stopped = std::async(std::launch::async, [&] { server_->stop(); });
  EXPECT_NE(events.read_until("0\r\n\r\n"), "");
  stopped.get();
  EXPECT_EQ(service_.subscribers(), 0U);
}

TEST_F(Life, AnAnswerThatComesTooLateHurtsNobody) {
  options_.limits.stop_time = std::chrono::milliseconds(50);
  start();
  service_.hold_commits(true);
  RawClient client = tcp();
  client.send(request("POST", "/api/v1/jobs", "alice", R"({"command":["true"]})"));
  EXPECT_TRUE(comes_true([&] { return !service_.questions().empty(); }));
  server_.reset();
  EXPECT_TRUE(client.is_closed_by_peer());
  service_.hold_commits(false);
  EXPECT_TRUE(comes_true([&] { return service_.commits() == 1; }));
}

TEST_F(Life, ClientsThatComeAndGoLeaveNothingBehind) {
  start();
  for (int i = 0; i < 300; ++i) {
    RawClient client = i % 2 == 0 ? tcp() : local();
    if (i % 3 == 0) client.send("GET /api/v1/jobs HTTP/1.1\r\nHos");
    if (i % 3 == 1) client.send(request("GET", "/api/v1/events", "alice"));
    if (i % 5 == 0) client.send(request("GET", "/api/v1/jobs", "alice"));
  }
  EXPECT_TRUE(comes_true([&] {
    return ask("GET", "/metrics").body.find("berth_api_connections 1\n") != std::string::npos;
  }));
  EXPECT_EQ(service_.subscribers(), 0U);
}

}  // namespace
}  // namespace berth
