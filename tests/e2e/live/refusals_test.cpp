// Everything that can go wrong between the command line and a scheduler is told in a sentence, with
// what to do about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "client/played_scheduler.h"

namespace berth::test {
namespace {

using testing::HasSubstr;

TEST(NoScheduler, IsToldWithARemedy) {
  const TempFolder folder;
  const std::string socket = folder / "never/none.sock";  // not even its folder: told at once
  for (const char* command :
       {"queue", "nodes", "cancel 1", "submit -- true", "top", "why 1", "history", "policy"}) {
    const Ran ran =
        shell(folder, fmt::format("unset BERTH_URL; BERTH_SOCKET={} $BERTH {}", socket, command));
    EXPECT_EQ(ran.exit, 1) << command;
    EXPECT_EQ(
        ran.err,
        fmt::format(
            "berth: no scheduler at {}: start one with `berth serve`, or say where it is with "
            "BERTH_SOCKET or BERTH_URL\n",
            socket))
        << command;
    EXPECT_EQ(ran.out, "") << command;
  }
  EXPECT_THAT(shell(folder, "BERTH_PATIENCE=0 BERTH_URL=http://127.0.0.1:1 $BERTH queue").err,
              HasSubstr("no scheduler at http://127.0.0.1:1"));
  EXPECT_EQ(shell(folder, "BERTH_URL=gopher://x $BERTH queue").exit, 2);
}

struct Refusal {
  int status;
  const char* said;
};
TEST(Refusals, AreToldInTheSchedulersWords) {
  for (const int status : {400, 403, 404, 409, 413, 422, 429, 503}) {
    PlayedScheduler scheduler;
    scheduler.first = [&](const Asked&) {
      return refusal(status, fmt::format("because of {}", status));
    };
    for (const char* command :
         {"submit -- true", "queue", "show 12", "logs 12", "change 12 gpus=1", "nodes"}) {
      const Ran ran = scheduler.run(command);
      EXPECT_EQ(ran.exit, 1) << command << status;
      EXPECT_EQ(ran.err, fmt::format("berth: because of {}\n", status)) << command;
    }
  }
}

TEST(Refusals, WithoutWordsAreStillUnderstood) {
  const std::vector<Refusal> rows{
      {401, "not let in"},           {403, "not allowed"},          {404, "no such thing"},
      {409, "present state"},        {422, "never be done"},        {429, "too many"},
      {503, "cannot take this now"}, {500, "the scheduler failed"}, {418, "refused"}};
  for (const Refusal& row : rows) {
    PlayedScheduler scheduler;
    scheduler.first = [&](const Asked&) {
      return Told{.status = row.status, .body = "<html>nonsense"};
    };
    const Ran ran = scheduler.run("queue");
    EXPECT_EQ(ran.exit, 1) << row.status;
    EXPECT_THAT(ran.err, HasSubstr(row.said)) << row.status;
    EXPECT_THAT(ran.err, HasSubstr(fmt::format("HTTP {}", row.status)));
  }
}

TEST(Refusals, SayWhatToDoAboutTokensAndLimits) {
  PlayedScheduler scheduler;
  scheduler.first = [](const Asked&) { return refusal(401, "a token is needed"); };
  EXPECT_THAT(scheduler.run("queue").err, HasSubstr("set BERTH_TOKEN"));
  scheduler.first = [](const Asked&) {
    Told told = refusal(429, "too many jobs");
    told.headers.emplace_back("Retry-After", "7");
    return told;
  };
  EXPECT_THAT(scheduler.run("submit -- true").err, HasSubstr("try again in 7 s"));
  EXPECT_EQ(scheduler.server().asked("POST", "/api/v1/jobs").size(),
            1U);  // a refusal is not repeated
}

TEST(BrokenAnswers, AreFailuresNotCrashes) {
  for (const char* body :
       {"", "{", "[]", "3", "null", R"({"jobs":3})", R"({"nodes":[3]})", R"({"job":"x"})"}) {
    PlayedScheduler scheduler;
    scheduler.first = [&](const Asked&) { return Told{.body = body}; };
    for (const char* command : {"queue", "submit -- true", "show 12", "nodes", "why 12", "history",
                                "policy", "share list", "token make x", "top", "cancel 12"}) {
      const Ran ran = scheduler.run(command);
      EXPECT_EQ(ran.signal, 0) << command << body << ran.err;
      EXPECT_LE(ran.exit, 1) << command << body << ran.err;
    }
    EXPECT_EQ(scheduler.run("submit -- true").exit, 1) << body;
    EXPECT_EQ(scheduler.run("show 12").exit, 1) << body;
  }
}

TEST(ALostSubmit, IsRepeatedAndThenToldWithItsKey) {
  PlayedScheduler scheduler;
  scheduler.first = [](const Asked&) { return Told{.cut_after = 0}; };
  const Ran ran = scheduler.sh("BERTH_PATIENCE=3 $BERTH submit -- true");
  EXPECT_EQ(ran.exit, 1);
  EXPECT_THAT(ran.err, HasSubstr("trying again")) << "it takes longer than a moment";
  const auto asked = scheduler.server().asked("POST", "/api/v1/jobs");
  ASSERT_GE(asked.size(), 3U);
  for (const Asked& one : asked)
    EXPECT_EQ(one.headers.at("idempotency-key"), asked[0].headers.at("idempotency-key"));
  EXPECT_THAT(ran.err,
              HasSubstr("submit again with --key " + asked[0].headers.at("idempotency-key")));
}

// The socket comes a second after the command was typed.
TEST(ASchedulerThatIsAway, IsWaitedForByEveryCommand) {
  PlayedScheduler scheduler;
  for (const char* command :
       {"submit -- true", "queue", "why 13", "history", "hold 13", "requeue 13", "nodes"}) {
    const Ran ran = scheduler.sh(
        fmt::format("rm -f late.sock; (sleep 1; ln -s berth.sock late.sock) & "
                    "BERTH_SOCKET=$PWD/late.sock BERTH_PATIENCE=30 $BERTH {}; code=$?; wait; "
                    "exit $code",
                    command));
    EXPECT_EQ(ran.exit, 0) << command << ran.err;
  }
  const Ran sbatch = scheduler.sh(
      "rm -f late.sock; (sleep 1; ln -s berth.sock late.sock) & "
      "BERTH_SOCKET=$PWD/late.sock sbatch --wrap true; code=$?; wait; exit $code");
  EXPECT_EQ(sbatch.exit, 0) << sbatch.err;
  EXPECT_EQ(scheduler.server().asked("POST", "/api/v1/jobs").size(), 2U);
}

TEST(ASchedulerThatStops, IsAskedAgain) {
  PlayedScheduler scheduler;
  std::atomic<int> left = 3;
  scheduler.first = [&](const Asked&) {
    return left-- > 0 ? refusal(503, "the scheduler is stopping") : Told{.status = 0};
  };
  const Ran ran = scheduler.run("submit -- true");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(scheduler.server().asked("POST", "/api/v1/jobs").size(), 4U);
}

TEST(ARequestThatWasCutOff, IsRepeatedOnlyIfThatDoesNoHarm) {
  for (const auto& [command, times] :
       std::vector<std::pair<std::string, std::size_t>>{{"cancel 13", 2U},
                                                        {"hold 13", 2U},
                                                        {"release 13", 2U},
                                                        {"requeue 13", 1U},
                                                        {"cancel --signal USR1 13", 1U}}) {
    PlayedScheduler scheduler;
    std::atomic<bool> is_cut = false;
    scheduler.first = [&](const Asked& asked) {
      if (asked.method != "POST" || is_cut.exchange(true)) return Told{.status = 0};
      return Told{.cut_after = 0};
    };
    const Ran ran = scheduler.run(command);
    EXPECT_EQ(ran.exit, times == 2 ? 0 : 1) << command << ran.err;
    EXPECT_EQ(scheduler.server().asked("POST", "/api/v1/jobs/actions").size(), times) << command;
  }
}

// Ctrl-C; a shell's background job ignores it unless it is told not to.
TEST(AnInterruptedSubmit, SaysWhetherTheJobMayHaveBeenTaken) {
  PlayedScheduler scheduler;
  const std::string interrupt =
      "2> said & pid=$!; for i in $(seq 1000); do {} && break; sleep 0.02; done; "
      "kill -INT $pid; wait $pid; echo $?; cat said";
  const Ran away =
      scheduler.sh("BERTH_SOCKET=$PWD/none.sock env --default-signal=INT $BERTH submit -- true " +
                   fmt::format(fmt::runtime(interrupt), "grep -q 'trying again' said"));
  EXPECT_THAT(away.out, testing::StartsWith("130\n"));
  EXPECT_THAT(away.out, HasSubstr("the job was not taken"));

  std::atomic<bool> is_over = false;
  scheduler.first = [&](const Asked& asked) {
    if (asked.method != "POST") return Told{.status = 0};
    std::ofstream(scheduler.folder() / "reached") << "";
    while (!is_over && scheduler.server().is_up())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Told{.cut_after = 0};
  };
  const Ran out = scheduler.sh("env --default-signal=INT $BERTH submit --key mine -- true " +
                               fmt::format(fmt::runtime(interrupt), "[ -e reached ]"));
  is_over = true;
  EXPECT_THAT(out.out, testing::StartsWith("130\n"));
  EXPECT_THAT(out.out, HasSubstr("it may have been taken: submit again with --key mine"));
}

TEST(Tokens, GoWithEveryRequestOverTheNetwork) {
  const TempFolder folder;
  ScriptedServer server("", [](const Asked& asked) {
    const auto found = asked.headers.find("authorization");
    if (found == asked.headers.end() || found->second != "Bearer s3cret") return refusal(401, "no");
    return Told{.body = R"({"jobs":[],"next":null,"total":0})"};
  });
  const std::string url = fmt::format("BERTH_URL=http://127.0.0.1:{} ", server.port());
  EXPECT_EQ(shell(folder, url + "BERTH_TOKEN=s3cret $BERTH queue").out, "no jobs\n");
  EXPECT_THAT(shell(folder, url + "BERTH_TOKEN=wrong $BERTH queue").err,
              HasSubstr("ask an administrator"));
  folder.file("token", "s3cret\n");
  EXPECT_EQ(shell(folder, "chmod 600 token; " + url + "BERTH_TOKEN_FILE=token $BERTH queue").out,
            "no jobs\n");
  EXPECT_THAT(shell(folder, "chmod 644 token; " + url + "BERTH_TOKEN_FILE=token $BERTH queue").err,
              HasSubstr("chmod 600"));
}

/// A certificate of our own, served by openssl's test server from the folder's files.
TEST(Tls, ChecksTheCertificateAgainstTheGivenAuthority) {
  const TempFolder folder;
  if (shell(folder, "command -v openssl").exit != 0) GTEST_SKIP() << "openssl is not installed";
  ASSERT_EQ(
      shell(folder,
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
            "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null && "
            "mkdir -p api/v1 && printf '{\"policy\":\"las\",\"settings\":{}}' > api/v1/policy")
          .exit,
      0);
  // -WWW serves files with HTTP/1.0 up to the close; port 0 lets the system choose and it is
  // printed
  const Ran ran = shell(
      folder,
      "unset BERTH_TOKEN; openssl s_server -accept 127.0.0.1:0 -cert cert.pem -key key.pem -WWW "
      "> server.out 2>&1 < /dev/null & server=$!; "
      "for i in $(seq 500); do grep -q ACCEPT server.out && break; sleep 0.02; done; "
      "port=$(sed -n 's/^ACCEPT.*:\\([0-9]*\\)$/\\1/p' server.out | head -1); "
      "BERTH_CA_FILE=cert.pem BERTH_URL=https://localhost:$port $BERTH policy; "
      "BERTH_CA_FILE=cert.pem BERTH_URL=https://127.0.0.1:$port $BERTH policy; "
      "BERTH_URL=https://localhost:$port $BERTH policy; echo exit $?; "
      "BERTH_CA_FILE=none.pem BERTH_URL=https://localhost:$port $BERTH policy; "
      "kill $server");
  EXPECT_EQ(ran.out, "las\nlas\nexit 1\n") << ran.err << folder.read("server.out");
  EXPECT_THAT(ran.err, HasSubstr("(name its CA with BERTH_CA_FILE)"));
  EXPECT_THAT(ran.err, HasSubstr("none.pem: no certificates to trust"));
}

}  // namespace
}  // namespace berth::test
