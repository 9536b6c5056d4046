// HTTP/1.1 by the book, bytes that are none, and everything too large, too slow or too much.
#include <gtest/gtest.h>

#include "api/server_fixture.h"

namespace berth {
namespace {

using testing::RawClient;

class Protocol : public testing::ServerTest {};

TEST_F(Protocol, ManyRequestsOnOneConnectionKeepTheirOrder) {
  start();
  RawClient client = tcp();
  std::string all;
  for (int i = 1; i <= 50; ++i) {  // slow and quick ones mixed: answers must not overtake
    const bool is_quick = i % 2 == 0;
    all +=
        request(is_quick ? "GET" : "POST", is_quick ? "/api/v1/whoami" : "/api/v1/jobs", "alice",
                is_quick ? "" : R"({"command":["true"]})", fmt::format("X-Request-Id: r{}\r\n", i));
  }
  ASSERT_TRUE(client.send(all));
  for (int i = 1; i <= 50; ++i) {
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer) << i;
    EXPECT_EQ(answer->header("x-request-id"), fmt::format("r{}", i));
  }
  EXPECT_EQ(service_.job_count(), 25U);
}

TEST_F(Protocol, AHalfClosedConnectionGetsItsAnswer) {
  start();
  RawClient client = tcp();
  client.send(request("GET", "/api/v1/jobs", "alice"));
  client.end_sending();
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_TRUE(client.is_closed_by_peer());
}

TEST_F(Protocol, ChunkedBodiesAndContinueAreUnderstood) {
  start();
  RawClient client = tcp();
  client.send(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: bearer alice\r\n"
      "Content-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
      "8\r\n{\"comman\r\nc\r\nd\":[\"true\"]}\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_answer().value().status, 201);
  client.send(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n"
      "Content-Type: application/json\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_answer().value().status, 100);
  client.send(R"({"command":["true"]})");
  EXPECT_EQ(client.read_answer().value().status, 201);
  const auto odd = client.ask(request("GET", "/healthz", "", "", "Expect: the-worst\r\n"));
  EXPECT_EQ(odd.value().status, 417);
}

TEST_F(Protocol, OldClientsAreServedAndLeft) {
  start();
  RawClient client = tcp();
  client.send("GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.read_answer().value().status, 200);
  EXPECT_TRUE(client.is_closed_by_peer());
  RawClient stays = tcp();
  for (int i = 0; i < 2; ++i) {
    stays.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(stays.read_answer().value().header("connection"), "keep-alive");
  }
}

TEST_F(Protocol, AbsoluteTargetsAreUnderstood) {
  start();
  EXPECT_EQ(ask("GET", "http://here:1/api/v1/whoami").status, 200);
}

TEST_F(Protocol, BytesThatAreNoRequestGet400AndTheDoor) {
  start();
  const std::string kNoRequest[] = {
      "\x16\x03\x01\x02\x01\x01\xfc\x03\x03\r\n\r\n",  // TLS hello
      "HELLO\r\n\r\n",
      "GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /healthz\r\n\r\n",
      "GET /hea\x01lthz HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n",
      "GET /healthz HTTP/1.1\r\n: x\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\x01\r\n\r\n",
      "GET /healthz HTTP/1.1\r\n\r\n",                        // no Host
      "GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",  // two
      "GET healthz HTTP/1.1\r\nHost: x\r\n\r\n",              // no path
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n",
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\nContent-Type: "
      "application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  };
  for (const std::string& bytes : kNoRequest) {
    RawClient client = tcp();
    client.send(bytes);
    client.end_sending();
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer) << bytes;
    EXPECT_EQ(answer->status, 400) << bytes;
    EXPECT_EQ(answer->json()["error"]["code"], "bad_request");
    EXPECT_TRUE(client.is_closed_by_peer()) << bytes;
  }
  EXPECT_EQ(tcp().ask("GET / HTTP/3.0\r\nHost: x\r\n\r\n").value().status, 505);
  EXPECT_EQ(ask("GET", "/healthz", "").status, 200) << "because the server lives on";
}

TEST_F(Protocol, WhatIsTooLargeIsRefusedBeforeItIsRead) {
  options_.api.max_submit_bytes = 1'000;
  options_.api.max_body_bytes = 100;
  start();
  EXPECT_EQ(ask("GET", "/healthz?" + std::string(9'000, 'a'), "").status, 414);
  EXPECT_EQ(ask("GET", "/healthz", "", "", "A: " + std::string(17'000, 'a') + "\r\n").status, 431);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "alice", std::string(1'001, ' ')).status, 413);
  EXPECT_EQ(ask("POST", "/api/v1/jobs/actions", "alice", std::string(101, ' ')).status, 413);
  // Announced but never sent: the answer comes all the same.
  RawClient client = tcp();
  client.send(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n"
      "Content-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n");
  EXPECT_EQ(client.read_answer().value().status, 413);
  EXPECT_TRUE((client.end_sending(), client.is_closed_by_peer()));
  RawClient chunks = tcp();
  chunks.send(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n"
      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) chunks.send("64\r\n" + std::string(100, ' ') + "\r\n");
  EXPECT_EQ(chunks.read_answer().value().status, 413);
}

TEST_F(Protocol, StrangersBodiesAreNotRead) {
  start();
  RawClient client = tcp();
  client.send("POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(client.read_answer().value().status, 401);
  EXPECT_TRUE((client.end_sending(), client.is_closed_by_peer()));
}

TEST_F(Protocol, BodiesAreJsonAndOnlyWhereTheyAreTaken) {
  start();
  RawClient client = tcp();
  client.send(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n"
      "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(client.read_answer().value().status, 415);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", "alice", "{}").status, 400);
}

TEST_F(Protocol, SlowHeadersAndBodiesAreGivenUp) {
  options_.limits.header_time = options_.limits.body_time = std::chrono::milliseconds(300);
  start();
  RawClient header = tcp();
  header.send("GET /healthz HTTP/1.1\r\nHo");
  RawClient body = tcp();
  body.send(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n"
      "Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{");
  EXPECT_EQ(header.read_answer().value().status, 408);
  EXPECT_EQ(body.read_answer().value().status, 408);
}

TEST_F(Protocol, IdleConnectionsAreClosedQuietly) {
  options_.limits.idle_time = std::chrono::milliseconds(300);
  start();
  RawClient client = tcp();
  EXPECT_EQ(client.ask(request("GET", "/healthz", "")).value().status, 200);
  EXPECT_EQ(client.read_until("x"), "");
}

TEST_F(Protocol, ClientsThatDoNotReadAreGivenUp) {
  options_.limits.write_time = std::chrono::milliseconds(300);
  start();
  for (int i = 0; i < 50; ++i)
    EXPECT_GT(submit("alice", fmt::format(R"({{"command":["{}"]}})", std::string(100'000, 'x'))),
              0U);
  RawClient client = tcp();
  client.shrink_receive_buffer();
  client.send(request("GET", "/api/v1/jobs", "alice"));
  // 5 MB do not fit into the buffers of the two sockets; the client reads nothing.
  EXPECT_TRUE(comes_true([&] {
    return ask("GET", "/metrics").body.find("berth_api_connections 1\n") != std::string::npos;
  }));
}

TEST_F(Protocol, RequestsPerSecondAreLimitedPerCaller) {
  options_.api.requests_per_second = 0.001;
  options_.api.burst = 3;
  start();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("GET", "/api/v1/whoami").status, 200);
  const auto refused = ask("GET", "/api/v1/whoami");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_EQ(ask("GET", "/api/v1/whoami", "bob").status, 200);
  // Who guesses tokens pays by address.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("GET", "/api/v1/whoami", "guess").status, 401);
  EXPECT_EQ(ask("GET", "/api/v1/whoami", "guess").status, 429);
}

}  // namespace
}  // namespace berth
