// What the listing commands print, word for word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/played_scheduler.h"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(Queue, ShowsWhatWaitsAndWhatRuns) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("queue");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "job  name       user  queue  state    gpus   time  where (why not)\n"
            "---  ---------  ----  -----  -------  ----  -----  ----------------------\n"
            " 12  train      ann   gpu    running     2   1:05  n1:0,1\n"
            " 13  big        bob   gpu    pending     4  +0:00  (2 of 4 GPUs are free)\n"
            " 14  later      ann   gpu    held        1  +0:00  (held by ann)\n"
            " 20  sweep[0]   bob   gpu    pending     1  +0:00  (after others)\n"
            " 21  sweep[5]   bob   gpu    pending     1  +0:00  (after others)\n"
            " 22  sweep[10]  bob   gpu    pending     1  +0:00  (after others)\n");
}

TEST(Queue, PassesFiltersOn) {
  PlayedScheduler scheduler;
  EXPECT_THAT(scheduler.run("queue --user ann --state running,held").out,
              testing::AllOf(HasSubstr("train"), HasSubstr("later"), Not(HasSubstr("big"))));
  const auto asked = scheduler.server().asked("GET", "/api/v1/jobs").back();
  EXPECT_EQ(asked.parameter("user"), "ann");
  EXPECT_EQ(asked.parameter("state"), "running,held");
  EXPECT_THAT(scheduler.run("queue 9").out, HasSubstr("failed"));  // by number, whatever its state
  EXPECT_EQ(scheduler.run("queue --user nobody").out, "no jobs\n");
  EXPECT_EQ(scheduler.run("queue --me").exit, 0);  // by the name that the scheduler knows us by
  EXPECT_EQ(scheduler.server().asked("GET", "/api/v1/jobs").back().parameter("user"), "ann");
}

TEST(Queue, TakesPartsOfArrays) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("queue 20_[0-5:5] --json");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  const json page = json::parse(ran.out);
  ASSERT_EQ(page["jobs"].size(), 2U);
  EXPECT_EQ(page["jobs"][1]["number"], 21);
  EXPECT_THAT(scheduler.run("queue 20_7").err, HasSubstr("array 20 has no job 7"));
  EXPECT_THAT(scheduler.run("queue 12_1").err, HasSubstr("job 12 is no array"));
}

TEST(Queue, NamesOfOthersDoNotCommandTheTerminal) {
  PlayedScheduler scheduler;
  scheduler.set_job({{"number", 13}, {"reason", "\x1b]0;evil\x07"}});
  const Ran ran = scheduler.run("queue 13");
  EXPECT_THAT(ran.out, HasSubstr("(?]0;evil?)"));
  EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
}

TEST(Queue, AReaderThatGoesAwayIsNoFailure) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.sh("set -o pipefail; $BERTH queue --watch=0.1 | head -1");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("where"));
}

TEST(Nodes, ShowWhoIsOnWhichDevice) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("nodes");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "node  state    type  gpus  cpus  memory  devices (jobs on each)\n"
            "----  -------  ----  ----  ----  ------  ----------------------\n"
            "n1    up       a100   2/4  8/16     64G  12 12 · ·\n"
            "n2    up       a100   0/4  0/16     64G  · · · ·\n"
            "n3    drained  v100   0/4  0/16     64G  · · · ·  (new fan)\n");
  EXPECT_EQ(json::parse(scheduler.run("nodes --json").out)["nodes"].size(), 3U);
}

TEST(History, AddsUp) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("history --user ann --outcome failed --since 2025-11-01 --limit 5");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "job  name  user  outcome  exit  gpus  ended         waited      ran   gpu time  why\n"
            "---  ----  ----  -------  ----  ----  ------------  ------  -------  ---------  ---\n"
            "  9  old   ann   failed      3     2  Nov 16 14:34    1:00  1:00:00  2.0 GPU h\n"
            "\n"
            "1 job, 0 completed, 2.0 GPU h, waited 60.0 s on average\n");
  scheduler.set_job(
      {{"number", 9}, {"state", "cancelled"}, {"started", nullptr}, {"exit_code", 0}});
  EXPECT_THAT(scheduler.run("history --user ann --outcome failed --since 2025-11-01 --limit 5").out,
              ::testing::HasSubstr("cancelled     -     2"));  // it never ran: nothing exited
  const auto asked = scheduler.server().asked("GET", "/api/v1/history").back();
  EXPECT_EQ(asked.parameter("outcome"), "failed");
  EXPECT_EQ(asked.parameter("since"), "1761955200000000");  // microseconds
  EXPECT_EQ(asked.parameter("limit"), "5");
}

TEST(Show, TellsEverythingOfAJob) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("show 12");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "job 12: train, running\n"
            "  user         ann\n"
            "  queue        gpu\n"
            "  wants        2 GPUs\n"
            "  time limit   2:00:00\n"
            "  command      ./train\n"
            "  submitted    N/A\n"
            "  ran          1:05, 0.0 GPU min\n"
            "  runs on      n1:0,1\n"
            "  output       /home/ann/berth-12.out\n"
            "  attempt 3.1: 2025-11-16T13:33:20 to now on n1: under way\n");
  EXPECT_EQ(json::parse(scheduler.run("show 12 --json").out)["number"], 12);
}

TEST(Why, TellsReasonsAndWhatWouldHelp) {
  PlayedScheduler scheduler;
  const Ran ran = scheduler.run("why 13");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "job 13 is pending: waits for 4 a100 on one node: 2 of 4 are free on n1\n"
            "\n"
            "What holds it back\n"
            "  capacity  2 GPUs are free of 4 [you can change it; alone it keeps the job waiting]\n"
            "            free 2, need 4\n"
            "\n"
            "What would let it start\n"
            "  ask for 2 GPUs: berth change 13 gpus=2\n"
            "\n"
            "Place 1 of 2 in the order of those that wait.\n");
  EXPECT_EQ(json::parse(scheduler.run("why 13 --json").out)["place"], 1);
}

TEST(Why, SaysOnceThatAJobIsOver) {
  PlayedScheduler scheduler;
  scheduler.first = [](const Asked& asked) {
    if (!asked.path().ends_with("/why")) return Told{.status = 0};
    return Told{.body = R"({"job":9,"state":"failed","summary":"is over: exit code 3"})"};
  };
  EXPECT_EQ(scheduler.run("why 9").out, "job 9 is over (failed): exit code 3\n");
}

TEST(Why, ExitsWithThreeIfItCanNeverStart) {
  PlayedScheduler scheduler;
  scheduler.first = [](const Asked& asked) {
    if (!asked.path().ends_with("/why")) return Told{.status = 0};
    return Told{.body = R"({"job":13,"state":"pending","summary":"no node has 9 GPUs",
                            "reasons":[{"kind":"request","text":"9 GPUs on one node; the largest has 4","when":"never"}]})"};
  };
  EXPECT_EQ(scheduler.run("why 13").exit, 3);
}

TEST(Cluster, PolicySharesTokensAndNodes) {
  PlayedScheduler scheduler;
  EXPECT_EQ(scheduler.run("policy").out, "las\n  quantum = 60\n");
  EXPECT_EQ(scheduler.run("policy set srtf --set a=1 --set b=x=y").exit, 0);
  EXPECT_EQ(scheduler.sent("PUT", "/api/v1/policy"),
            json::parse(R"({"policy":"srtf","settings":{"a":"1","b":"x=y"}})"));

  EXPECT_THAT(scheduler.run("share list").out, HasSubstr("user  ann        2  2.0 GPU h"));
  EXPECT_EQ(scheduler.run("share set vision --group --shares 3 --gpu-limit 8 --gpu-hours 10").exit,
            0);
  EXPECT_EQ(
      scheduler.sent("PUT", "/api/v1/shares"),
      json::parse(
          R"({"kind":"group","name":"vision","shares":3.0,"gpu_limit":8,"gpu_seconds_limit":36000.0})"));

  EXPECT_EQ(scheduler.run("token make laptop --role operator").out, "berth_s3cret\n");
  EXPECT_EQ(scheduler.sent("POST", "/api/v1/tokens"),
            json::parse(R"({"name":"laptop","role":"operator"})"));
  EXPECT_THAT(scheduler.run("token list").out,
              HasSubstr("laptop  ann   user  2025-11-16T13:33:20  for ever"));
  EXPECT_EQ(scheduler.run("token revoke 'my laptop'").exit, 0);
  EXPECT_EQ(scheduler.server().asked("DELETE", "/api/v1/tokens/my%20laptop").size(), 1U);

  EXPECT_EQ(scheduler.run("node drain n3 --reason 'new fan'").exit, 0);
  EXPECT_EQ(scheduler.sent("POST", "/api/v1/nodes/n3/drain"),
            json::parse(R"({"reason":"new fan"})"));
}

}  // namespace
}  // namespace berth::test
