// State directories written by an earlier version, opened by this one (README.md says what is in
// them).
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "e2e/serve/served.h"
#include "exec/claim.h"
#include "exec/order_file.h"
#include "exec/shim_protocol.h"
#include "project_paths.h"

namespace berth::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using Jobs = std::map<std::uint64_t, json>;

/// A packed state in a folder of its own, and what the version that wrote it said of it.
class Packed {
 public:
  explicit Packed(const std::string& name) {
    const Ran tar = shell(served.folder(), fmt::format("tar -xJf '{}/tests/upgrade/{}.tar.xz'",
                                                       BERTH_SOURCE_DIR, name));
    EXPECT_EQ(tar.exit, 0) << tar.err;
    // Jobs of other users pass through on the way to their scripts.
    EXPECT_EQ(::chmod(served.folder().path().c_str(), 0755), 0);
    std::ofstream(served.config()) << view("serve.yaml");
  }

  [[nodiscard]] std::string view(const std::string& name) const {
    return served.folder().read("view/" + name);
  }
  [[nodiscard]] json view_of(const std::string& name) const { return json::parse(view(name)); }
  /// By number.
  [[nodiscard]] Jobs jobs_then() const {
    Jobs jobs = by_number(view_of("queue.json"));
    jobs.merge(by_number(view_of("history.json")));
    return jobs;
  }
  [[nodiscard]] Jobs jobs_now() const {
    return by_number(json::parse(ask({"queue", "--state", "all", "--json"})));
  }
  /// `berth ARGUMENTS` against it.
  [[nodiscard]] std::string ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--server", served.socket()});
    const Ran ran = berth(served.folder(), arguments);
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return ran.out;
  }
  [[nodiscard]] std::uint64_t named(const std::string& name) const {
    for (const auto& [number, job] : jobs_then())
      if (job.at("spec").value("name", "") == name) return number;
    ADD_FAILURE() << "no job of the name " << name;
    return 0;
  }
  /// What the jobs of `running` and `sliced` wait for.
  void let_go() const { std::ofstream(served.folder() / "go").put('\n'); }

  /// The shims of the attempts that ran, begun anew: a process cannot be packed. Those that were
  /// gone with the machine had claims; the new ones make their own.
  void begin_shims() const {
    const RunDir directory(served.state() + "/jobs");
    std::vector<AttemptId> attempts;
    std::vector<fs::path> gone;
    for (const auto& entry : fs::directory_iterator(directory.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("order.")) attempts.push_back(attempt_named(name.substr(6)).value());
      if (name.starts_with("attempt.") || name.starts_with("exit.")) gone.push_back(entry.path());
    }
    for (const fs::path& path : gone) fs::remove(path);
    ASSERT_FALSE(attempts.empty());
    const char* other = std::getenv("BERTH_UPGRADE_SHIM");
    for (const AttemptId attempt : attempts) {
      const Ran begun =
          shell(served.folder(), fmt::format("'{}' '{}' {} 3>/dev/null </dev/null >/dev/null 2>&1",
                                             other != nullptr ? other : BERTH_SHIM,
                                             directory.path(), attempt_name(attempt)));
      ASSERT_EQ(begun.exit, 0);
      ASSERT_TRUE(eventually([&] {
        const auto claim = read_claim(directory, attempt);
        return claim && *claim && (*claim)->job != 0;
      }));
    }
  }
  /// Sends the shim of this job to sleep, as the scheduler that is gone had done.
  void put_to_sleep(std::uint64_t job) const {
    const RunDir directory(served.state() + "/jobs");
    for (const auto& entry : fs::directory_iterator(directory.path())) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("order.")) continue;
      const auto order = decode_order(get_file(entry.path().string()).value().value());
      ASSERT_TRUE(order);
      if (order->order.job != job) continue;
      const auto shim = holder_of(directory, order->order.attempt);
      ASSERT_TRUE(shim);
      sigval value{};
      value.sival_int = pack({ShimAction::Suspend, 0});
      ASSERT_EQ(::sigqueue(*shim, shim_signal(), value), 0);
      return;
    }
    FAIL() << "job " << job << " has no order";
  }

  Served served;

 private:
  [[nodiscard]] static Jobs by_number(const json& list) {
    Jobs jobs;
    for (const json& job : list.at("jobs")) jobs[job.at("number").get<std::uint64_t>()] = job;
    return jobs;
  }
};

/// The same jobs, as they were: a version may say more of a job, and nothing else.
void expect_same(const Packed& packed, const Jobs& then) {
  Jobs now;
  // A new life answers before it has looked once at what waits for what.
  const bool is_settled = eventually([&] {
    now = packed.jobs_now();
    return std::ranges::all_of(then, [&](const auto& was) {
      const auto is = now.find(was.first);
      return is != now.end() && is->second.at("state") == was.second.at("state");
    });
  });
  EXPECT_TRUE(is_settled);
  ASSERT_EQ(now.size(), then.size());
  for (const auto& [number, was] : then) {
    ASSERT_TRUE(now.contains(number)) << number;
    const json& is = now.at(number);
    for (const char* key : {"state", "attempts", "failures", "preemptions", "exit_code", "signal",
                            "array", "array_index", "submitted", "ended"})
      ASSERT_EQ(is.at(key), was.at(key)) << key << " of job " << number;
    for (const auto& [key, value] : was.at("spec").items())
      ASSERT_EQ(is.at("spec").value(key, json()), value) << key << " of job " << number;
  }
}

class Upgrade : public ::testing::TestWithParam<const char*> {};

TEST_P(Upgrade, EveryJobIsThereAsItWasAlsoTheSecondTime) {
  Packed packed(GetParam());
  const Jobs then = packed.jobs_then();
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(packed.served.begin());
    expect_same(packed, then);
    ASSERT_EQ(packed.served.stop(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(States, Upgrade,
                         ::testing::Values("empty", "past", "queue", "settings", "killed"),
                         [](const auto& state) { return std::string(state.param); });

TEST(UpgradeStates, ThePastHasItsTenThousand) {
  EXPECT_EQ(Packed("past").jobs_then().size(), 10'000U);
}

TEST(UpgradeStates, TheQueueGoesOnWhereItWas) {
  Packed packed("queue");
  ASSERT_TRUE(packed.served.begin());
  const json job = {{"command", {"train"}}, {"workdir", "/"}};
  const auto next = packed.served.submit(job);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, packed.jobs_then().rbegin()->first + 1);
  if (::geteuid() == 0) {  // whose key it is
    EXPECT_EQ(packed.served.submit(job, "the-same-again"), packed.named("keyed"));
  }
  // What waits for a job hears of it.
  const std::uint64_t first = packed.named("first");
  const std::uint64_t after = packed.named("after-not-ok");
  EXPECT_TRUE(eventually([&] { return packed.served.state_of(after) == "blocked"; }));
  EXPECT_EQ(packed.served.ask("DELETE", fmt::format("/api/v1/jobs/{}", first))->status / 100, 2);
  EXPECT_TRUE(eventually([&] { return packed.served.state_of(after) == "pending"; }));
}

TEST(UpgradeStates, WhatPeopleHaveSetHolds) {
  Packed packed("settings");
  ASSERT_TRUE(packed.served.begin());
  // A new life answers before its first pass, which is the one that knows.
  EXPECT_TRUE(eventually([&] {
    return json::parse(packed.ask({"policy", "--json"})) == packed.view_of("policy.json");
  })) << packed.ask({"policy", "--json"});
  const auto by = [](const json& list, const char* what) {
    std::map<std::string, json> found;
    for (const json& one : list.at(what)) found[one.value("name", "")] = one;
    return found;
  };
  const auto shares = by(json::parse(packed.ask({"share", "list", "--json"})), "shares");
  for (const auto& [name, was] : by(packed.view_of("shares.json"), "shares")) {
    ASSERT_TRUE(shares.contains(name)) << name;
    for (const char* key : {"shares", "gpu_limit", "job_limit", "gpu_seconds_limit"})
      EXPECT_EQ(shares.at(name).at(key), was.at(key)) << name << ' ' << key;
  }
  const auto nodes = by(json::parse(packed.ask({"nodes", "--json"})), "nodes");
  for (const auto& [name, was] : by(packed.view_of("nodes.json"), "nodes"))
    EXPECT_EQ(nodes.at(name).at("state"), was.at("state")) << name;
}

TEST(UpgradeStates, TokensWork) {
  Packed packed("settings");
  ASSERT_TRUE(packed.served.begin());
  std::istringstream secrets(packed.view("secrets.txt"));
  std::vector<std::pair<std::string, std::string>> who;
  for (std::string secret; secrets >> secret;) {
    if (!secret.starts_with("berth_")) continue;
    client::HttpClient http{packed.served.endpoint(), std::chrono::seconds(20)};
    client::HttpRequest request{.method = "GET", .target = "/api/v1/whoami"};
    request.headers.emplace_back("Authorization", "Bearer " + secret);
    const auto reply = http.send(request);
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->status, 200) << reply->body;
    const json answer = json::parse(reply->body);
    who.emplace_back(answer.at("user"), answer.at("role"));
  }
  const std::vector<std::pair<std::string, std::string>> expected{
      {"root", "user"}, {"nobody", "operator"}, {"root", "admin"}};
  EXPECT_EQ(who, expected);
}

TEST(UpgradeStates, JobsThatRunAreAdoptedAndEndAsWhatTheyAre) {
  if (::geteuid() != 0) GTEST_SKIP() << "jobs of other users run only under root";
  Packed packed("running");
  const Jobs then = packed.jobs_then();
  packed.begin_shims();
  packed.put_to_sleep(packed.named("asleep"));
  ASSERT_TRUE(packed.served.begin());
  const std::size_t shims = packed.served.shims();
  EXPECT_EQ(shims, 7U);
  expect_same(packed, then);
  packed.let_go();
  const auto ends = [&](const char* name, const char* state, int exit, int attempts) {
    const std::uint64_t job = packed.named(name);
    EXPECT_TRUE(eventually([&] { return packed.served.is_over(job); })) << name;
    const json is = packed.jobs_now().at(job);
    EXPECT_EQ(is.at("state"), state) << name;
    EXPECT_EQ(is.at("exit_code"), exit) << name;
    EXPECT_EQ(is.at("attempts"), attempts) << name;
  };
  ends("well", "completed", 0, 1);
  ends("badly", "failed", 7, 1);
  ends("gang", "completed", 0, 1);
  ends("of-another", "completed", 0, 1);
  ends("again", "failed", 3, 2);
  ends("going", "cancelled", 0, 1);
  ends("waits", "completed", 0, 1);
  EXPECT_EQ(packed.served.state_of(packed.named("held")), "held");
  const std::uint64_t asleep = packed.named("asleep");
  EXPECT_EQ(packed.served.state_of(asleep), "suspended");
  const auto resume = packed.served.ask("POST", fmt::format("/api/v1/jobs/{}/resume", asleep));
  ASSERT_TRUE(resume);
  EXPECT_EQ(resume->status / 100, 2) << resume->body;
  ends("asleep", "completed", 0, 1);
}

/// Whose turn it is a new life decides anew: whoever ran may be stopped for it and run again (0.1
/// does).
TEST(UpgradeStates, JobsThatTookTurnsComeToTheirEnd) {
  if (::geteuid() != 0) GTEST_SKIP() << "jobs of other users run only under root";
  Packed packed("sliced");
  packed.begin_shims();
  packed.put_to_sleep(packed.named("one"));
  ASSERT_TRUE(packed.served.begin());
  EXPECT_EQ(packed.jobs_now().size(), 2U);
  packed.let_go();
  for (const char* name : {"one", "two"}) {
    const std::uint64_t job = packed.named(name);
    ASSERT_TRUE(eventually([&] { return packed.served.is_over(job); })) << name;
    EXPECT_EQ(packed.served.state_of(job), "completed") << name;
  }
}

/// Nobody begins their shims: they were lost with the machine.
TEST(UpgradeStates, AfterALossOfPowerJobsRunAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "jobs of other users run only under root";
  Packed packed("running");
  packed.let_go();
  ASSERT_TRUE(packed.served.begin());
  for (const auto& [name, state] : std::map<std::string, std::string>{{"well", "completed"},
                                                                      {"badly", "failed"},
                                                                      {"gang", "completed"},
                                                                      {"of-another", "completed"},
                                                                      {"going", "cancelled"}}) {
    const std::uint64_t job = packed.named(name);
    ASSERT_TRUE(eventually([&] { return packed.served.is_over(job); })) << name;
    EXPECT_EQ(packed.served.state_of(job), state) << name;
  }
  EXPECT_EQ(packed.jobs_now().size(), packed.jobs_then().size());
}

}  // namespace
}  // namespace berth::test
