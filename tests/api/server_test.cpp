// Every resource over real sockets: status codes, who is asking, and what the answers look like.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <set>

#include "api/server_fixture.h"

namespace berth {
namespace {

class ServerRoutes : public testing::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    start();
  }
};

TEST_F(ServerRoutes, AJobIsMadeOnceForAKey) {
  const auto first = ask("POST", "/api/v1/jobs", "alice", R"({"command":["true"],"name":"a"})",
                         "Idempotency-Key: k1\r\n");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.header("location"), "/api/v1/jobs/1");
  EXPECT_EQ(first.json(),
            nlohmann::json::parse(R"({"job":1,"count":1,"repeat":false,"notes":[]})"));
  const auto second = ask("POST", "/api/v1/jobs", "alice", R"({"command":["true"],"name":"a"})",
                          "Idempotency-Key: k1\r\n");
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.json()["job"], 1);
  EXPECT_TRUE(second.json()["repeat"]);
  const auto differs = ask("POST", "/api/v1/jobs", "alice", R"({"command":["true"],"key":"k2"})",
                           "Idempotency-Key: k1\r\n");
  EXPECT_EQ(differs.status, 400);
  EXPECT_EQ(service_.job_count(), 1U);
}

TEST_F(ServerRoutes, BadJobsAreRefusedWithEveryReason) {
  const auto wrong = ask("POST", "/api/v1/jobs", "alice", R"({"comand":["true"],"gpus":"two"})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.json()["error"]["code"], "bad_request");
  EXPECT_EQ(wrong.json()["error"]["messages"].size(), 2U);
  const auto nothing = ask("POST", "/api/v1/jobs", "alice", R"({"gpus":1})");
  EXPECT_EQ(nothing.status, 422);
  const auto large = ask("POST", "/api/v1/jobs", "alice", R"({"command":["x"],"gpus":99})");
  EXPECT_EQ(large.status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "alice", "{").status, 400);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "alice", "[1]").status, 400);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "alice", R"({"command":["x"],"gpus":1e999})").status, 400);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "alice", std::string(100'000, '[')).status, 400);
  EXPECT_EQ(service_.job_count(), 0U);
}

TEST_F(ServerRoutes, PagesOfJobsFollowEachOther) {
  for (int i = 0; i < 5; ++i) EXPECT_GT(submit(), 0U);
  EXPECT_GT(submit("bob"), 0U);
  auto page = ask("GET", "/api/v1/jobs?user=alice&limit=2");
  EXPECT_EQ(page.json()["total"], 5);
  EXPECT_EQ(page.json()["next"], 2);
  EXPECT_EQ(page.header("link"), "</api/v1/jobs?user=alice&limit=2&after=2>; rel=\"next\"");
  page = ask("GET", "/api/v1/jobs?user=alice&limit=2&after=4");
  EXPECT_EQ(page.json()["jobs"].size(), 1U);
  EXPECT_TRUE(page.json()["next"].is_null());
  EXPECT_EQ(ask("GET", "/api/v1/jobs?ids=2-3,6").json()["jobs"].size(), 3U);
  EXPECT_EQ(ask("GET", "/api/v1/jobs?state=running").json()["jobs"].size(), 0U);
  for (const char* bad : {"state=runing", "limit=0", "limit=1001", "limit=x", "ids=3-", "ids=9-3",
                          "ids=1-999999999999", "user=a&user=b", "usr=a", "user=%zz", "user=%00",
                          "user=%ff", "after=-1"}) {
    EXPECT_EQ(ask("GET", fmt::format("/api/v1/jobs?{}", bad)).status, 400) << bad;
  }
}

TEST_F(ServerRoutes, AJobIsShownChangedAndActedUpon) {
  const auto number = submit("alice", R"({"command":["true"],"env":{"SECRET":"x"}})");
  const std::string path = fmt::format("/api/v1/jobs/{}", number);
  EXPECT_EQ(ask("GET", path).json()["spec"]["env"]["SECRET"], "x");
  EXPECT_FALSE(ask("GET", path, "bob").json()["spec"].contains("env"));
  EXPECT_TRUE(ask("GET", path, "olga").json()["spec"].contains("env"));
  EXPECT_FALSE(ask("GET", "/api/v1/jobs").json()["jobs"][0]["spec"].contains("env"));

  EXPECT_EQ(ask("PATCH", path, "alice", R"({"priority":7})").json()["spec"]["priority"], 7);
  EXPECT_EQ(ask("PATCH", path, "alice", R"({"prioriti":7})").status, 400);
  EXPECT_EQ(ask("PATCH", path, "alice", "{}").status, 400);
  EXPECT_EQ(ask("PATCH", path, "bob", R"({"priority":7})").status, 403);

  EXPECT_EQ(ask("POST", path + "/hold", "alice", R"({"why":"later"})").json()["text"], "held");
  EXPECT_EQ(ask("POST", path + "/hold").status, 409);
  EXPECT_EQ(ask("POST", path + "/release").status, 200);
  EXPECT_EQ(ask("POST", path + "/suspend").status, 409);
  service_.run(number);
  EXPECT_EQ(ask("POST", path + "/suspend").status, 200);
  EXPECT_EQ(ask("POST", path + "/resume").status, 200);
  EXPECT_EQ(ask("POST", path + "/signal").status, 400);
  EXPECT_EQ(ask("POST", path + "/signal", "alice", R"({"signal":65})").status, 400);
  EXPECT_EQ(ask("POST", path + "/signal", "alice", R"({"signal":10})").status, 200);
  EXPECT_EQ(ask("POST", path + "/requeue").status, 200);
  EXPECT_EQ(ask("POST", path + "/cancel", "bob").status, 403);
  EXPECT_EQ(ask("GET", path + "/why").json()["job"], number);
  EXPECT_EQ(ask("GET", path + "/attempts").json()["attempts"].size(), 1U);
  EXPECT_EQ(ask("GET", path + "/steps").json()["steps"][0]["id"], "batch");
  EXPECT_EQ(ask("GET", "/api/v1/jobs/99/steps").status, 404);
  EXPECT_EQ(ask("GET", fmt::format("/api/v1/steps?ids={},99", number)).json()["jobs"].size(), 1U);
  EXPECT_EQ(ask("GET", "/api/v1/steps").status, 400);
  EXPECT_EQ(ask("GET", "/api/v1/steps?ids=x").status, 400);
  EXPECT_EQ(ask("DELETE", path).json()["done"], true);
  EXPECT_EQ(ask("DELETE", path).status, 409);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/99").status, 404);
  EXPECT_EQ(ask("POST", "/api/v1/jobs/99/hold").status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/0").status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/18446744073709551616").status, 404);
}

TEST_F(ServerRoutes, ManyJobsAtOnceNeedASelection) {
  for (int i = 0; i < 3; ++i) EXPECT_GT(submit(), 0U);
  EXPECT_GT(submit("bob"), 0U);
  const char* const path = "/api/v1/jobs/actions";
  EXPECT_EQ(ask("POST", path, "alice", R"({"verb":"cancel"})").status, 400);
  EXPECT_EQ(ask("POST", path, "alice", R"({"verb":"explode","ids":[1]})").status, 400);
  EXPECT_EQ(ask("POST", path, "alice", R"({"verb":"hold","ids":[-1]})").status, 400);
  const auto held = ask("POST", path, "alice", R"({"verb":"hold","ids":[1,4]})").json();
  EXPECT_EQ(held["results"][0]["done"], true);
  EXPECT_EQ(held["results"][1]["done"], false) << "because 4 is bob's";
  const auto gone = ask("POST", path, "alice", R"({"verb":"cancel","user":"alice"})").json();
  EXPECT_EQ(gone["results"].size(), 3U);
}

TEST_F(ServerRoutes, HistoryIsPagedFromTheLatestEnd) {
  for (int i = 0; i < 3; ++i) {
    const auto number = submit();
    service_.run(number);
    service_.finish(number, i == 1 ? LiveState::Failed : LiveState::Completed, i);
  }
  auto page = ask("GET", "/api/v1/history?limit=2").json();
  ASSERT_EQ(page["jobs"].size(), 2U);
  EXPECT_EQ(page["jobs"][0]["number"], 3);
  page =
      ask("GET", fmt::format("/api/v1/history?limit=2&cursor={}", page["next"].get<std::string>()))
          .json();
  ASSERT_EQ(page["jobs"].size(), 1U);
  EXPECT_EQ(page["jobs"][0]["number"], 1);
  EXPECT_TRUE(page["next"].is_null());
  EXPECT_EQ(ask("GET", "/api/v1/history?outcome=failed").json()["jobs"].size(), 1U);
  EXPECT_EQ(ask("GET", "/api/v1/history?outcome=lost").status, 400);
  EXPECT_EQ(ask("GET", "/api/v1/history?cursor=1").status, 400);
}

TEST_F(ServerRoutes, AListCanReachBackToJobsThatAreOver) {
  EXPECT_GT(submit(), 0U);
  const auto number = submit();
  service_.run(number);
  service_.finish(number, LiveState::Failed, 3);
  const auto listed = [&](const std::string& query) {
    return ask("GET", "/api/v1/jobs" + query).json()["jobs"].size();
  };
  EXPECT_EQ(listed(""), 1U);
  EXPECT_EQ(listed("?state=all"), 2U);
  EXPECT_EQ(listed("?state=failed"), 1U);
  EXPECT_EQ(listed("?state=all&since=1"), 2U);
  EXPECT_EQ(listed("?state=all&since=4000000000000000"), 1U) << "because it ended before";
  EXPECT_EQ(ask("GET", "/api/v1/jobs?since=yesterday").status, 400);
}

TEST_F(ServerRoutes, TheClusterIsShownToAllAndChangedByFew) {
  EXPECT_EQ(ask("GET", "/api/v1/cluster").json()["policy"], "fifo");
  EXPECT_EQ(ask("GET", "/api/v1/cluster").json()["queues"][1]["name"], "night");
  EXPECT_EQ(ask("GET", "/api/v1/nodes").json()["nodes"].size(), 2U);
  EXPECT_EQ(ask("POST", "/api/v1/nodes/n1/drain").status, 403);
  const auto drained = ask("POST", "/api/v1/nodes/n1/drain", "olga", R"({"reason":"fan"})").json();
  EXPECT_EQ(drained["state"], "drained");
  EXPECT_EQ(drained["reason"], "fan");
  EXPECT_EQ(ask("POST", "/api/v1/nodes/n1/resume", "olga").json()["state"], "up");
  EXPECT_EQ(ask("POST", "/api/v1/nodes/n2/down", "olga").json()["state"], "down");
  EXPECT_EQ(ask("POST", "/api/v1/nodes/n%2F1/drain", "olga").status, 404);
  EXPECT_EQ(ask("POST", "/api/v1/nodes/n1/explode", "olga").status, 404);

  EXPECT_EQ(ask("PUT", "/api/v1/policy", "olga", R"({"policy":"srtf"})").status, 403);
  EXPECT_EQ(ask("PUT", "/api/v1/policy", "root", R"({"settings":{}})").status, 400);
  const auto policy =
      ask("PUT", "/api/v1/policy", "root", R"({"policy":"srtf","settings":{"a":1,"b":"x"}})");
  EXPECT_EQ(policy.json(), ask("GET", "/api/v1/policy").json());
  EXPECT_EQ(policy.json()["settings"]["a"], "1");

  const auto share = ask("PUT", "/api/v1/shares", "root",
                         R"({"kind":"group","name":"ml","shares":3,"gpu_limit":4})");
  EXPECT_EQ(share.json()["gpu_limit"], 4);
  const auto kept =
      ask("PUT", "/api/v1/shares", "root", R"({"kind":"group","name":"ml","job_limit":9})");
  EXPECT_EQ(kept.json()["shares"], 3.0) << "because what is not named stays";
  EXPECT_EQ(ask("GET", "/api/v1/shares").json()["shares"].size(), 1U);
  EXPECT_EQ(ask("PUT", "/api/v1/shares", "root", R"({"kind":"pet","name":"x"})").status, 400);
}

TEST_F(ServerRoutes, TokensAreMadeUsedAndRevoked) {
  EXPECT_EQ(ask("POST", "/api/v1/tokens", "alice", R"({"name":"t","role":"admin"})").status, 403);
  EXPECT_EQ(ask("POST", "/api/v1/tokens", "alice", R"({"name":"t","role":"king"})").status, 400);
  const auto made = ask("POST", "/api/v1/tokens", "alice", R"({"name":"laptop"})");
  ASSERT_EQ(made.status, 201);
  const std::string text = made.json()["token"];
  EXPECT_EQ(ask("GET", "/api/v1/whoami", text).json()["user"], "alice");
  EXPECT_EQ(ask("GET", "/api/v1/tokens").body.find(text), std::string::npos);
  const auto gone = ask("DELETE", "/api/v1/tokens/laptop");
  EXPECT_EQ(gone.status, 204);
  EXPECT_EQ(gone.header("content-length"), "");
  EXPECT_EQ(ask("GET", "/api/v1/whoami", text).status, 401);
  EXPECT_EQ(ask("DELETE", "/api/v1/tokens/laptop").status, 404);
}

TEST_F(ServerRoutes, TcpNeedsATokenAndTheSocketKnowsItsPeer) {
  const auto nobody = ask("GET", "/api/v1/jobs", "");
  EXPECT_EQ(nobody.status, 401);
  EXPECT_EQ(nobody.header("www-authenticate"), "Bearer realm=\"berth\"");
  EXPECT_EQ(ask("GET", "/api/v1/jobs", "wrong").status, 401);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", "", "", "Authorization: Basic YTpi\r\n").status, 401);
  EXPECT_EQ(ask("GET", "/healthz", "").status, 200);
  EXPECT_EQ(ask("GET", "/api/v1/openapi.json", "").status, 200);
  EXPECT_EQ(ask("GET", "/metrics", "").status, 401);
  EXPECT_EQ(ask("GET", "/metrics", "alice").status, 200);

  service_.add_peer(::getuid(), {"me", ::getuid(), ::getgid(), Role::Operator});
  const auto me = local().ask(request("GET", "/api/v1/whoami", ""));
  ASSERT_TRUE(me);
  EXPECT_EQ(me->json()["user"], "me");
  EXPECT_EQ(me->json()["uid"], ::getuid());
  EXPECT_EQ(me->json()["role"], "operator");
  const auto other = local().ask(request("GET", "/api/v1/whoami", "alice"));
  EXPECT_EQ(other->json()["user"], "alice") << "because a token says more than the peer";
  EXPECT_EQ(local().ask(request("GET", "/api/v1/whoami", "wrong"))->status, 401);
}

TEST_F(ServerRoutes, TheServiceHearsWhoReallyAsks) {
  const auto number = submit("bob");
  const std::string job = fmt::format("/api/v1/jobs/{}", number);
  const auto before = service_.questions().size();
  std::ignore = ask("GET", "/api/v1/jobs", "alice");
  std::ignore = ask("POST", job + "/hold", "bob");
  std::ignore = ask("PUT", "/api/v1/policy", "root", R"({"policy":"fifo"})");
  const auto questions = service_.questions();
  ASSERT_EQ(questions.size(), before + 3);
  EXPECT_EQ(questions[before].caller.user, "alice");
  EXPECT_EQ(questions[before].caller.uid, 1'001U);
  EXPECT_EQ(questions[before + 1].caller.user, "bob");
  EXPECT_EQ(questions[before + 2].caller.role, Role::Admin);
}

TEST_F(ServerRoutes, FaultsHaveTheirStatus) {
  const std::map<FaultKind, int> expected{{FaultKind::BadRequest, 400}, {FaultKind::Forbidden, 403},
                                          {FaultKind::NotFound, 404},   {FaultKind::Conflict, 409},
                                          {FaultKind::Impossible, 422}, {FaultKind::TooMany, 429},
                                          {FaultKind::Unavailable, 503}};
  for (const auto& [kind, status] : expected) {
    service_.fail_with(Fault{kind, {"one", "two"}});
    for (const auto& answer : {ask("GET", "/api/v1/jobs"),
                               ask("POST", "/api/v1/jobs", "alice", R"({"command":["x"]})")}) {
      EXPECT_EQ(answer.status, status);
      EXPECT_EQ(answer.json()["error"]["messages"], nlohmann::json::parse(R"(["one","two"])"));
    }
  }
}

TEST_F(ServerRoutes, HealthAndMetricsTellOfTrouble) {
  EXPECT_EQ(ask("GET", "/healthz", "").body, R"({"status":"ok"})");
  service_.set_trouble("no space left for the journal");
  const auto ill = ask("GET", "/healthz", "");
  EXPECT_EQ(ill.status, 503);
  EXPECT_EQ(ill.body.find("journal"), std::string::npos) << "because strangers may ask";
  const auto metrics = ask("GET", "/metrics");
  EXPECT_NE(metrics.body.find("berth_jobs 0\n"), std::string::npos);
  EXPECT_NE(metrics.body.find(R"(berth_api_answers_total{route="showHealth",status="503"} 1)"),
            std::string::npos);
}

TEST_F(ServerRoutes, HeadAndWrongMethodsAreAnsweredByTheBook) {
  const auto get = ask("GET", "/api/v1/cluster");
  const auto head = ask("HEAD", "/api/v1/cluster");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-type"), get.header("content-type"));
  EXPECT_GT(std::stoi(head.header("content-length")), 100);
  const auto wrong = ask("DELETE", "/api/v1/jobs");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST, GET, HEAD");
  EXPECT_EQ(ask("OPTIONS", "/api/v1/jobs").status, 405);
  EXPECT_EQ(ask("OPTIONS", "/api/v1/jobs").header("access-control-allow-origin"), "");
  for (const char* path : {"/", "/api", "/api/v1", "/api/v1/jobs/", "/api/v1/../v1/jobs",
                           "/api/v1/%2e%2e/jobs", "//api/v1/jobs", "/etc/passwd"}) {
    EXPECT_EQ(ask("GET", path).status, 404) << path;
  }
}

TEST_F(ServerRoutes, EveryAnswerCarriesARequestId) {
  EXPECT_EQ(ask("GET", "/healthz", "", "", "X-Request-Id: abc-1\r\n").header("x-request-id"),
            "abc-1");
  const auto odd = ask("GET", "/healthz", "", "", "X-Request-Id: a b<script>\r\n");
  EXPECT_FALSE(odd.header("x-request-id").empty());
  EXPECT_EQ(odd.header("x-request-id").find('<'), std::string::npos);
}

TEST_F(ServerRoutes, EverybodyMayConnectToTheSocket) {
  struct stat status {};
  ASSERT_EQ(::stat(bound_.unix_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0666U);
}

}  // namespace
}  // namespace berth
