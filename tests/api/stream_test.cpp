// Server-sent events over real sockets: order, going on after a break, many readers, slow ones.
#include <gtest/gtest.h>

#include "api/server_fixture.h"

namespace berth {
namespace {

using testing::RawClient;

class Events : public testing::ServerTest {
 protected:
  [[nodiscard]] RawClient listen(const std::string& query = "", const std::string& more = "") {
    RawClient client = tcp();
    client.send(request("GET", "/api/v1/events" + query, "alice", "", more));
    greeting_ = client.read_until("retry: 2000\n\n");  // from here on it listens
    EXPECT_FALSE(greeting_.empty());
    return client;
  }
  std::string greeting_;
};

TEST_F(Events, ComeAsTheyHappenWithTheirNumbers) {
  start();
  RawClient client = listen();
  EXPECT_NE(greeting_.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  service_.happen("job", 7, "alice", R"({"job":7})");
  EXPECT_NE(client.read_until("id: 1\nevent: job\ndata: {\"job\":7}\n\n"), "");
  service_.happen("node", 0, "", "{\"two\":\n\"lines\"}");
  EXPECT_NE(client.read_until("id: 2\nevent: node\ndata: {\"two\":\ndata: \"lines\"}\n\n"), "");
}

TEST_F(Events, AreFiltered) {
  start();
  RawClient of_job = listen("?job=7,9");
  RawClient of_user = listen("?user=bob&kind=job");
  service_.happen("job", 8, "alice", R"("no")");
  service_.happen("node", 0, "bob", R"("no")");
  service_.happen("job", 9, "bob", R"("yes")");
  for (RawClient* client : {&of_job, &of_user}) {
    const std::string text = client->read_until(R"("yes")");
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find(R"("no")"), std::string::npos);
  }
}

TEST_F(Events, GoOnAfterTheLastOneSeen) {
  start();
  for (int i = 1; i <= 5; ++i) service_.happen("job", 1, "alice", fmt::format("{}", i));
  RawClient again = listen("", "Last-Event-ID: 3\r\n");
  const std::string text = again.read_until("id: 5\n");
  EXPECT_EQ(text.find("id: 3\n"), std::string::npos);
  EXPECT_NE(text.find("id: 4\n"), std::string::npos);
  EXPECT_NE(listen("?after=0").read_until("id: 1\n"), "");
  EXPECT_EQ(ask("GET", "/api/v1/events", "alice", "", "Last-Event-ID: x\r\n").status, 400);
}

TEST_F(Events, SayWhatIsNoLongerKeptAndWhenNumbersBeganAnew) {
  service_.keep_events(2);
  start();
  for (int i = 1; i <= 5; ++i) service_.happen("job", 1, "alice", fmt::format("{}", i));
  // 1 was seen; 2 and 3 are gone; 4 and 5 are kept.
  EXPECT_NE(listen("?after=1").read_until("event: gap\ndata: {\"missed\":2}\n\nid: 4\n"), "");
  EXPECT_NE(listen("?after=99").read_until("event: reset\ndata: {}\n\nid: 4\n"), "");
}

TEST_F(Events, TwoHundredReadersHearEverything) {
  start();
  std::vector<RawClient> readers;
  for (int i = 0; i < 200; ++i) readers.push_back(listen());
  for (int i = 1; i <= 20; ++i) service_.happen("job", 1, "alice", fmt::format("{}", i));
  for (RawClient& reader : readers) EXPECT_NE(reader.read_until("id: 20\n"), "");
  readers.clear();
  EXPECT_TRUE(comes_true([&] { return service_.subscribers() == 0; }))
      << "because who leaves is noticed without a heartbeat";
}

TEST_F(Events, AHeartbeatKeepsQuietConnectionsAlive) {
  options_.api.heartbeat = std::chrono::milliseconds(50);
  start();
  RawClient client = listen();
  for (int i = 0; i < 3; ++i) EXPECT_NE(client.read_until(":\n\n"), "");
}

TEST_F(Events, SlowReadersGetWhatFittedAndTheEnd) {
  options_.api.max_event_buffer_bytes = 100'000;
  start();
  RawClient client = listen();
  client.shrink_receive_buffer();
  const std::string large(50'000, 'x');
  for (int i = 0; i < 1'000; ++i) service_.happen("job", 1, "alice", large);  // 50 MB
  const std::string text = client.read_until("event: overflow");
  ASSERT_FALSE(text.empty());
  EXPECT_LT(text.size(), 40'000'000U) << "because the buffer is bounded";
  EXPECT_TRUE(client.is_closed_by_peer());
  EXPECT_TRUE(comes_true([&] { return service_.subscribers() == 0; }));
}

TEST_F(Events, AnsweredWithoutChunksToOldClients) {
  start();
  RawClient client = tcp();
  client.send("GET /api/v1/events?after=0 HTTP/1.0\r\nAuthorization: Bearer alice\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n").find("chunked"), std::string::npos);
  service_.happen("job", 1, "alice", "1");
  EXPECT_NE(client.read_until("data: 1\n\n"), "");
}

}  // namespace
}  // namespace berth
