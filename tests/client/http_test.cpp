// The HTTP client against answers good and bad; where a scheduler is looked for.
#include "client/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <sys/stat.h>
#include <unistd.h>

#include "client/answers.h"
#include "client/endpoint.h"
#include "client/scheduler.h"
#include "client/scripted_server.h"
#include "client/sse.h"

namespace berth::client {
namespace {

using test::Asked;
using test::ScriptedServer;
using test::Told;
using testing::HasSubstr;
using testing::StartsWith;

Endpoint at(const ScriptedServer& server) {
  Endpoint endpoint;
  endpoint.host = "127.0.0.1";
  endpoint.port = server.port();
  return endpoint;
}

TEST(Http, KeepsItsConnectionBetweenRequests) {
  ScriptedServer server("", [](const Asked& asked) { return Told{.body = asked.target}; });
  HttpClient client(at(server));
  for (const char* target : {"/a", "/b", "/c"}) {
    const auto reply = client.send({.target = target});
    ASSERT_TRUE(reply) << reply.error().text();
    EXPECT_EQ(reply->body, target);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(Http, ReadsChunksHoweverTheyAreCut) {
  ScriptedServer server("", [](const Asked&) {
    return Told{.chunks = {"one ", std::string(100'000, 'x'), " two"}};
  });
  HttpClient client(at(server));
  const auto reply = client.send({.target = "/"});
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->body, "one " + std::string(100'000, 'x') + " two");
  ASSERT_TRUE(client.send({.target = "/"}));  // the end was found: the connection goes on
  EXPECT_EQ(server.connections(), 1);
}

TEST(Http, OpensAnotherConnectionWhenTheServerClosesOne) {
  ScriptedServer server("", [](const Asked&) { return Told{.body = "x", .closes = true}; });
  HttpClient client(at(server));
  ASSERT_TRUE(client.send({.target = "/"}));
  ASSERT_TRUE(client.send({.target = "/"}));
  EXPECT_EQ(server.connections(), 2);
}

TEST(Http, RepeatsARequestThatAKeptConnectionLost) {
  std::atomic<int> count = 0;
  ScriptedServer server("", [&](const Asked&) {  // closes silently after the first answer
    Told told{.body = "x"};
    if (++count == 1) told.raw = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    return told;
  });
  HttpClient client(at(server));
  ASSERT_TRUE(client.send({.target = "/"}));
  ASSERT_TRUE(client.send({.target = "/"}));
  EXPECT_EQ(server.connections(), 2);
}

/// Takes its second request, but hangs up on it.
class Forgetful {
 public:
  Forgetful()
      : server_("", [this](const Asked&) {
          Told told{.body = "x"};
          if (++count_ == 2) told.cut_after = 0;
          return told;
        }) {}
  [[nodiscard]] const ScriptedServer& server() const { return server_; }
  [[nodiscard]] int taken() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
  ScriptedServer server_;
};

// The scheduler may die after it has done what it was asked and before it has said so.
TEST(Http, RepeatsOnlyWhatCanBeDoneTwice) {
  const HttpRequest submit{
      .method = "POST", .target = "/", .body = "{}", .headers = {{"Idempotency-Key", "k"}}};
  const std::vector<std::pair<HttpRequest, bool>> rows{
      {{.target = "/"}, true},
      {{.method = "PUT", .target = "/", .body = "{}"}, true},
      {{.method = "DELETE", .target = "/"}, true},
      {submit, true},
      {{.method = "POST", .target = "/", .body = "{}"}, false},
      {{.method = "PATCH", .target = "/", .body = "{}"}, false}};
  for (const auto& [request, is_repeated] : rows) {
    Forgetful forgetful;
    HttpClient client(at(forgetful.server()));
    ASSERT_TRUE(client.send({.target = "/"}));
    const auto reply = client.send(request);
    EXPECT_EQ(reply.has_value(), is_repeated) << request.method;
    EXPECT_EQ(forgetful.taken(), is_repeated ? 3 : 2) << request.method;
    if (!reply) {
      EXPECT_THAT(reply.error().text(), HasSubstr("it may have been done"));
    }
  }
}

TEST(Http, DoesNotSendAnythingOnAConnectionThatWasClosedSince) {
  std::atomic<int> count = 0;
  ScriptedServer server("", [&](const Asked&) {
    Told told{.body = "x"};
    if (++count == 1) told.raw = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";  // and closes
    return told;
  });
  HttpClient client(at(server));
  ASSERT_TRUE(client.send({.target = "/"}));
  ASSERT_TRUE(test::eventually([&] { return !client.is_connected(); }));
  const auto reply = client.send({.method = "POST", .target = "/", .body = "{}"});
  EXPECT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(count, 2);
}

TEST(Http, DoesNotRepeatWhatIsOnlySlow) {
  std::atomic<int> count = 0;
  std::atomic<bool> is_over = false;
  ScriptedServer server("", [&](const Asked&) {
    if (++count == 1) return Told{.body = "x"};
    EXPECT_TRUE(test::eventually([&] { return is_over.load(); }));
    return Told{.body = "late"};
  });
  HttpClient client(at(server), std::chrono::milliseconds(100));
  ASSERT_TRUE(client.send({.target = "/"}));
  const auto reply = client.send({.target = "/"});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().text(), HasSubstr("no answer in time"));
  EXPECT_EQ(count, 2);
  is_over = true;
}

struct BadAnswer {
  const char* raw;
  const char* complaint;
};
TEST(Http, DistrustsItsAnswers) {
  const std::vector<BadAnswer> rows{
      {"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"},
      {"HTTP/1.1 xx OK\r\n\r\n", "not HTTP"},
      {"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "closed in the middle"},
      {"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "malformed"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no length"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
       "longer than it said"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "closed in the middle"},
      {"HTTP/1.1 200 OK\r\n", "closed in the middle"},
  };
  for (const BadAnswer& row : rows) {
    ScriptedServer server("", [&](const Asked&) { return Told{.raw = row.raw}; });
    HttpClient client(at(server));
    const auto reply = client.send({.target = "/"});
    ASSERT_FALSE(reply) << row.raw;
    EXPECT_THAT(reply.error().text(), HasSubstr(row.complaint)) << row.raw;
  }
}

TEST(Http, ReadsOldAndOddAnswers) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"HTTP/1.0 200 ok\r\nContent-type: text/plain\r\n\r\nuntil the end", "until the end"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
      {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "ok"},
      {"HTTP/1.1 204 None\r\n\r\n", ""},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nTrailer: "
       "x\r\n\r\n",
       "ok"},
  };
  for (const auto& [raw, body] : rows) {
    ScriptedServer server("", [&](const Asked&) { return Told{.raw = raw}; });
    HttpClient client(at(server));
    const auto reply = client.send({.target = "/"});
    ASSERT_TRUE(reply) << raw << reply.error().text();
    EXPECT_EQ(reply->body, body) << raw;
  }
}

TEST(Http, KnowsTheHeadOfAStreamBeforeItsFirstPiece) {
  std::atomic<bool> is_opened = false;
  ScriptedServer server("", [&](const Asked&) {
    return Told{.stream = [&](const Told::Write& write) {
      while (!is_opened && write("")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      write("late");
    }};
  });
  HttpClient client(at(server));
  const auto stream = client.open({.target = "/"}, std::chrono::seconds(20));
  ASSERT_TRUE(stream) << stream.error().text();
  EXPECT_EQ((*stream)->head().status, 200);
  is_opened = true;
  EXPECT_EQ((*stream)->rest().value_or("nothing"), "late");
}

TEST(Http, GivesUpOnAServerThatSaysNothing) {
  ScriptedServer server("", [](const Asked&) {
    return Told{.stream = [](const Told::Write& write) {
      while (write("")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }};
  });
  HttpClient client(at(server), std::chrono::milliseconds(100));
  const auto reply = client.send({.target = "/"});
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().text(), HasSubstr("no answer in time"));
}

TEST(Scheduler, RepeatsASubmitUnderTheSameKeyWhenItWasCutOff) {
  std::atomic<int> count = 0;
  ScriptedServer server("", [&](const Asked&) {
    Told told{.status = 201, .body = R"({"job":7,"count":1,"repeat":false,"notes":[]})"};
    if (++count == 1) told.cut_after = 0;  // taken, but the answer is lost
    return told;
  });
  Scheduler scheduler(at(server));
  JobSpec spec;
  spec.command = {"true"};
  const auto answer = scheduler.submit(spec);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->reply.first, 7U);
  const auto asked = server.asked("POST", "/api/v1/jobs");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].headers.at("idempotency-key"), asked[1].headers.at("idempotency-key"));
  EXPECT_EQ(asked[0].headers.at("idempotency-key").size(), 32U);
}

TEST(Scheduler, FetchesEveryPage) {
  ScriptedServer server("", [](const Asked& asked) {
    const bool is_first = asked.parameter("after").empty();
    return Told{.body = is_first ? R"({"jobs":[{"number":1},{"number":2}],"next":2,"total":3})"
                                 : R"({"jobs":[{"number":3}],"next":null,"total":3})"};
  });
  Scheduler scheduler(at(server));
  const auto page = scheduler.jobs({.user = "a&b=c"});
  ASSERT_TRUE(page) << page.error().text();
  EXPECT_EQ(page->jobs.size(), 3U);
  const auto asked = server.asked();
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].parameter("user"), "a&b=c");  // nothing of it became another parameter
  EXPECT_EQ(asked[1].parameter("after"), "2");
}

TEST(Views, AreReadFromOlderAndNewerSchedulers) {
  const auto job = job_from(
      R"({"number":5,"state":"hibernating","new_thing":1,"ended":null,"spec":{"name":"x","later":2,"gpus":3},
          "where":[{"node":"n1","devices":[0,1]}],"training":{"loss":null,"iterations":5}})");
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(job->state, LiveState::Unknown);
  EXPECT_FALSE(is_over(job->state));
  EXPECT_EQ(job->spec->name, "x");
  EXPECT_EQ(job->spec->gpus, 3);
  EXPECT_EQ(job->ended, 0);
  EXPECT_EQ(job->node_list(), "n1");
  EXPECT_FALSE(job->training->loss);
  for (const char* bad : {"", "nonsense", "[]", "3", "{}", "null"})
    EXPECT_FALSE(job_from(bad)) << bad;
  for (const char* odd : {"[]", "{}", "3", R"({"jobs":3})", R"({"jobs":[3]})"})
    EXPECT_TRUE(jobs_from(odd)) << odd;
}

TEST(ServerEvents, AreReadHoweverTheyAreCut) {
  const std::string text =
      ":\n\nid: 7\nevent: job\ndata: {\"a\":\ndata: 1}\n\nretry: 5\n\ndata: x\r\n\r\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EventReader reader;
    std::string seen;
    for (const std::string& part : {text.substr(0, cut), text.substr(cut)}) {
      reader.add(part);
      while (const auto event = reader.next())
        seen += event->id + "/" + event->kind + "/" + event->data + ";";
    }
    EXPECT_EQ(seen, "7/job/{\"a\":\n1};7/message/x;") << cut;
  }
}

class Endpoints : public testing::Test {
 protected:
  Endpoints() : folder_(testing::TempDir() + "berth-endpoint-" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_ + "/berth");
    vars_["HOME"] = folder_;
  }
  ~Endpoints() override { std::filesystem::remove_all(folder_); }

  std::string find(std::string_view server = "") {
    const auto found =
        find_endpoint(server, [this](const std::string& name) -> std::optional<std::string> {
          const auto value = vars_.find(name);
          if (value == vars_.end()) return std::nullopt;
          return value->second;
        });
    if (!found) return found.error().text();
    return found->text() + (found->token.empty() ? "" : " " + found->token);
  }
  std::string token_file(const std::string& content, mode_t mode) {
    const std::string path = folder_ + "/berth/token";
    std::ofstream(path) << content;
    ::chmod(path.c_str(), mode);
    return path;
  }

  std::string folder_;
  std::map<std::string, std::string> vars_;
};

TEST_F(Endpoints, AreLookedForInOrder) {
  EXPECT_EQ(find(), "/run/berth/berth.sock");
  vars_["XDG_RUNTIME_DIR"] = folder_ + "/other";
  EXPECT_EQ(find(), "/run/berth/berth.sock");  // nobody of our own was ever there
  vars_["XDG_RUNTIME_DIR"] = folder_;
  EXPECT_EQ(find(), folder_ + "/berth/berth.sock");  // its folder is: it may be restarting
  std::ofstream(folder_ + "/berth/berth.sock") << "";
  EXPECT_EQ(find(), folder_ + "/berth/berth.sock");
  vars_["BERTH_SOCKET"] = "/x/y.sock";
  EXPECT_EQ(find(), "/x/y.sock");
  vars_["BERTH_URL"] = "https://gpu.example:9000/";
  EXPECT_EQ(find(), "https://gpu.example:9000");
  EXPECT_EQ(find("/z.sock"), "/z.sock");
  EXPECT_EQ(find("unix:/z.sock"), "/z.sock");
  EXPECT_EQ(find("http://[::1]:80"), "http://[::1]:80");
  EXPECT_EQ(find("http://localhost"), "http://localhost:8471");
}

TEST_F(Endpoints, HaveTokensThatOnlyTheOwnerCanRead) {
  vars_["BERTH_URL"] = "https://gpu.example";
  vars_["XDG_CONFIG_HOME"] = folder_;
  const std::string path = token_file("s3cret\n", 0600);
  EXPECT_EQ(find(), "https://gpu.example:8471 s3cret");
  token_file("s3cret\n", 0640);
  EXPECT_EQ(find(), path + ": others may read this token (chmod 600 " + path + ")");
  vars_["BERTH_TOKEN"] = "other";
  EXPECT_EQ(find(), "https://gpu.example:8471 other");
  vars_["BERTH_TOKEN"] = "two\r\nEvil: header";  // no header can be smuggled in
  EXPECT_THAT(find(), HasSubstr("control characters"));
}

TEST_F(Endpoints, NeverSendATokenInTheClearUnasked) {
  vars_["BERTH_TOKEN"] = "s3cret";
  EXPECT_THAT(find("http://gpu.example"), HasSubstr("in the clear"));
  EXPECT_EQ(find("http://127.0.0.1:80"), "http://127.0.0.1:80 s3cret");
  vars_["BERTH_ALLOW_PLAIN"] = "1";
  EXPECT_EQ(find("http://gpu.example"), "http://gpu.example:8471 s3cret");
}

TEST_F(Endpoints, ThatMakeNoSenseAreRefused) {
  for (const char* bad : {"ftp://x", "http://", "http://h:0", "http://h:99999", "http://h:x",
                          "http://u@h", "http://h/path", "http://a b"})
    EXPECT_THAT(find(bad), HasSubstr("is no address")) << bad;
  EXPECT_THAT(find("/" + std::string(200, 'x')), HasSubstr("longer than the path"));
}

}  // namespace
}  // namespace berth::client
