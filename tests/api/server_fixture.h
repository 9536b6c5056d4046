// A server on a free loopback port and a Unix socket in a directory of its own, with a fake service
// behind it: alice (user), olga (operator), root (admin), each with a token of that name.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "api/raw_client.h"
#include "api/server.h"
#include "support/fake_service.h"

namespace berth::testing {

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-api-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    service_.add_token("alice", {"alice", 1'001, 1'001, Role::User});
    service_.add_token("bob", {"bob", 1'002, 1'002, Role::User});
    service_.add_token("olga", {"olga", 1'003, 1'003, Role::Operator});
    service_.add_token("root", {"root", 0, 0, Role::Admin});
    options_.unix_path = folder_ / "berth.sock";
    options_.tcp = api::TcpAddress{};
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void start() {
    server_ = std::make_unique<api::Server>(service_, options_);
    const auto bound = server_->start();
    ASSERT_TRUE(bound) << bound.error().text();
    bound_ = *bound;
  }
  [[nodiscard]] RawClient tcp() const { return RawClient::tcp(bound_.port); }
  [[nodiscard]] RawClient local() const { return RawClient::unix_socket(bound_.unix_path); }

  [[nodiscard]] static std::string request(const std::string& method, const std::string& target,
                                           const std::string& token, const std::string& body = "",
                                           const std::string& more = "") {
    std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: here\r\n{}", method, target, more);
    if (!token.empty()) text += fmt::format("Authorization: Bearer {}\r\n", token);
    if (!body.empty())
      text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
    return text + "\r\n" + body;
  }
  /// One request on a connection of its own.
  [[nodiscard]] RawAnswer ask(const std::string& method, const std::string& target,
                              const std::string& token = "alice", const std::string& body = "",
                              const std::string& more = "") const {
    RawClient client = tcp();
    client.send(request(method, target, token, body, more));
    const auto answer =
        client.read_answer(method == "HEAD" ? RawClient::Body::None : RawClient::Body::AsAnnounced);
    EXPECT_TRUE(answer) << method << " " << target;
    return answer.value_or(RawAnswer{});
  }
  [[nodiscard]] JobNumber submit(const std::string& token = "alice",
                                 const std::string& spec = R"({"command":["true"]})") const {
    const RawAnswer answer = ask("POST", "/api/v1/jobs", token, spec);
    EXPECT_EQ(answer.status, 201) << answer.body;
    return answer.status == 201 ? answer.json()["job"].get<JobNumber>() : 0;
  }
  /// Waits for a condition, not for a time.
  [[nodiscard]] static bool comes_true(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  std::filesystem::path folder_;
  FakeService service_;
  api::ServerOptions options_;
  api::Bound bound_;
  std::unique_ptr<api::Server> server_;
};

}  // namespace berth::testing
