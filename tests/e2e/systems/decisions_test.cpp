// Systems whose point is what they do to single jobs: end them, try them again, hold them back, let
// them take turns, put two on one device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "e2e/systems/system.h"

namespace berth::test::decisions_tests {
namespace {

using nlohmann::json;

// Nine trials, three rungs: one is trained to the end, eight are stopped, those that wait too.
TEST(Hpo, AStudyEndsWithOneTrialTrainedAndEightStopped) {
  System system{{.policy = "hpo",
                 .settings = {{"epochs", "9"}, {"halving", "sync"}, {"probe", "1"}},
                 .slots = 4}};
  std::vector<System::Job> trials;
  for (int i = 1; i <= 9; ++i) {
    json trial = system.trainer(fmt::format("trial-{}", i),
                                {.epochs = 9, .steps = 5, .step_ms = 60, .rate = 0.01 * i});
    trial["study"] = "rates";
    trials.push_back(system.submit(trial));
  }
  std::map<std::string, int> ends;
  for (const System::Job trial : trials) {
    const json end = system.ended(trial);
    ++ends[end["state"]];
    EXPECT_TRUE(end["state"] == "completed" || end["reason"] == "ended by the policy: early stop")
        << end.dump();
  }
  EXPECT_EQ(ends, (std::map<std::string, int>{{"cancelled", 8}, {"completed", 1}}));
}

TEST(Hpo, AStudyIsCancelledInOneStep) {
  System system{{.policy = "hpo", .slots = 2}};
  std::vector<System::Job> trials;
  for (int i = 1; i <= 5; ++i) {
    json trial = system.script(fmt::format("trial-{}", i), "sleep 1000");
    trial["study"] = "rates";
    trials.push_back(system.submit(trial));
  }
  const auto other = system.submit(system.script("other", "sleep 1000"));
  const Ran ran = berth(system.served().folder(),
                        {"cancel", "--study", "rates", "--server", system.served().socket()});
  EXPECT_EQ(ran.exit, 0) << ran.err;
  for (const System::Job trial : trials) EXPECT_EQ(system.ended(trial)["state"], "cancelled");
  EXPECT_FALSE(system.served().is_over(other));
}

// What the cluster did is tried again, what the user did is not.
TEST(Philly, TriesAgainWhatTheClusterHasDone) {
  System system{{.policy = "philly", .slots = 2}};
  const auto flaky = system.submit(
      system.script("flaky", "echo x >> $COUNT; [ $(wc -l < $COUNT) -ge 3 ] || exit 75"));
  const auto wrong = system.submit(system.script("wrong", "echo x >> $COUNT; exit 65"));
  const auto lost = system.submit(system.script("lost", "echo x >> $COUNT; exit 75"));
  EXPECT_EQ(system.ended(flaky)["state"], "completed");
  EXPECT_EQ(system.counted("flaky"), "x\nx\nx\n");
  EXPECT_EQ(system.ended(wrong)["state"], "failed");
  EXPECT_EQ(system.counted("wrong"), "x\n");
  EXPECT_EQ(system.ended(lost)["state"], "failed");
  EXPECT_EQ(system.counted("lost"), "x\nx\nx\nx\n");
}

// Two jobs take turns on one device, and neither is ever begun again.
TEST(Gandiva, SlicesOfTimeWithoutARestart) {
  System system{{.policy = "gandiva", .settings = {{"slice", "1"}, {"packing", "off"}}}};
  const std::string text = "echo begun >> $COUNT; for i in $(seq 60); do sleep 0.05; done";
  const auto first = system.submit(system.script("first", text));
  const auto second = system.submit(system.script("second", text));
  system.until("the second runs before the first is over", [&] {
    return system.counted("second") == "begun\n" && !system.served().is_over(first);
  });
  for (const auto job : {first, second}) EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(system.counted("first"), "begun\n");
  EXPECT_EQ(system.counted("second"), "begun\n");
}

// A lease ends and passes on: the second has its turn before the first is done.
TEST(Themis, LeasesPass) {
  System system{{.policy = "themis", .settings = {{"lease", "1"}, {"align", "1"}}}};
  const TrainerOptions paced{.epochs = 1, .steps = 80, .step_ms = 50};
  const auto first = system.submit(system.trainer("first", paced));
  system.until("the first runs", [&] { return system.is(first, "running"); });
  const auto second = system.submit(system.trainer("second", paced));
  system.until("the lease passes", [&] { return system.is(second, "running"); });
  EXPECT_FALSE(system.served().is_over(first));
  for (const auto job : {first, second}) EXPECT_EQ(system.ended(job)["state"], "completed");
}

// Two processes on one device, by choice of the policy.
TEST(SjfFfs, TwoJobsShareADevice) {
  System system{{.policy = "sjf-ffs"}};
  const std::string text = "echo $BERTH_DEVICES > $COUNT; sleep 1000";
  const auto first = system.submit(system.script("first", text));
  const auto second = system.submit(system.script("second", text));
  system.until("both run", [&] {
    return !system.counted("first").empty() && !system.counted("second").empty() &&
           system.is(first, "running") && system.is(second, "running");
  });
  EXPECT_EQ(system.counted("first"), system.counted("second"));
}

}  // namespace
}  // namespace berth::test::decisions_tests
