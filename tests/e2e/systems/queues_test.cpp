// Systems whose point is who goes first.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "e2e/systems/system.h"

namespace berth::test::queues_tests {
namespace {

using nlohmann::json;

// Both long jobs have sunk, the first before the second: in the low queue it comes first, and a
// waiter takes nobody's place there. A kill -9 changes neither; an engine that began anew would let
// the second try again at the top. Nobody ends before the newcomer has gone first.
TEST(Tiresias, LongJobsSinkAndStaySunkInTheirOrderOverARestart) {
  System system{{.policy = "tiresias-l", .settings = {{"thresholds", "2"}}}};
  const auto first = system.submit(system.script("first", "begun; " + steps_until("enough")));
  system.until("it runs", [&] { return system.steps("first") > 0; });
  const auto second = system.submit(system.script("second", "begun; " + steps_until("enough")));
  system.until("both have sunk", [&] { return system.order() == "first second first"; });
  system.restart();
  const int at_restart = system.steps("first");
  system.until("it goes on", [&] { return system.steps("first") > at_restart + 20; });
  EXPECT_EQ(system.order(), "first second first");
  const auto next = system.submit(system.script("next", "begun"));
  EXPECT_EQ(system.ended(next)["state"], "completed");
  // It takes the device at once, not when the other has sunk once more.
  EXPECT_NE(system.served().log().find(
                fmt::format("job preempted job={} by=@scheduler why=priority", first)),
            std::string::npos);
  system.until("a long job comes back", [&] { return system.order().size() > 23; });
  EXPECT_EQ(system.order(), "first second first next first");
  EXPECT_EQ(system.view(first)["preemptions"], 2);
  EXPECT_EQ(system.view(second)["preemptions"], 1);
  system.tell("enough");
  for (const auto job : {first, second}) EXPECT_EQ(system.ended(job)["state"], "completed");
}

// Until it is demoted, nobody of its own queue takes its place; then somebody does.
TEST(Tiresias, ALongJobMakesWayWhenItPassesTheThreshold) {
  constexpr double kThreshold = 2;
  System system{{.policy = "tiresias-l", .settings = {{"thresholds", "2"}}}};
  const auto far = system.submit(system.script("long", steps_until("enough")));
  system.until("it runs", [&] { return system.steps("long") > 0; });
  const auto next = system.submit(system.script("next", "true"));
  EXPECT_EQ(system.ended(next)["state"], "completed");
  const auto start_of = [&](System::Job job) { return system.view(job)["started"].get<double>(); };
  EXPECT_GE(1e-6 * (start_of(next) - start_of(far)), kThreshold);
  system.tell("enough");
  EXPECT_EQ(system.ended(far)["state"], "completed");
}

// Jobs have been short so far: who has outlived them all has the lowest index, although the
// thresholds would leave it where it is for an hour.
TEST(Gittins, WhoHasOutlivedTheHistoryMakesWay) {
  System system{
      {.policy = "tiresias-g",
       .settings = {{"thresholds", "3600"}, {"min_samples", "6"}, {"gittins_interval", "0.5"}},
       .slots = 2}};
  for (int i = 0; i < 6; ++i) {
    const auto brief = system.submit(system.script(fmt::format("brief-{}", i), "sleep 0.2"));
    if (i % 2 == 1) static_cast<void>(system.ended(brief));
  }
  json wide = system.script("long", steps_until("enough"));
  wide["gpus"] = 2;
  const auto far = system.submit(wide);
  system.until("it has outlived them", [&] { return system.steps("long") > 20; });
  const auto next = system.submit(system.script("next", "true"));
  EXPECT_EQ(system.ended(next)["state"], "completed");
  EXPECT_FALSE(system.served().is_over(far));
  system.tell("enough");
  EXPECT_EQ(system.ended(far)["state"], "completed");
}

json said(json job, int gpus, int seconds) {
  job["gpus"] = gpus;
  if (seconds > 0) job["estimate"] = seconds;
  return job;
}

class Qssf : public ::testing::Test {
 protected:
  static void run(System& system, const std::string& name, const std::string& text) {
    EXPECT_EQ(system.ended(system.submit(system.script(name, text)))["state"], "completed");
  }
  /// One device, held until both wait. What came first is like jobs that were long; what goes first
  /// is like those that were short. Nobody has said how long anything runs.
  static void expect_order_by_history(System& system) {
    const auto holder = system.submit(system.script("holder", steps_until("go")));
    system.until("it runs", [&] { return system.steps("holder") > 0; });
    const auto second = system.submit(system.script("imagenet-resnet-2", "begun"));
    const auto first = system.submit(system.script("mnist-mlp-2", "begun"));
    system.tell("go");
    for (const auto job : {holder, second, first}) static_cast<void>(system.ended(job));
    EXPECT_EQ(system.order(), "mnist-mlp-2 imagenet-resnet-2");
  }
};

TEST_F(Qssf, JobsOfALikeNameTellHowLongTheNextOneRuns) {
  System system{{.policy = "qssf"}};
  run(system, "imagenet-resnet-1", "sleep 1.2");
  run(system, "mnist-mlp-1", "sleep 0.1");
  system.restart();
  expect_order_by_history(system);
}

TEST_F(Qssf, WhatRanUnderAnotherPolicyCounts) {
  System system{{.policy = "fifo"}};
  run(system, "imagenet-resnet-1", "sleep 1.2");
  run(system, "mnist-mlp-1", "sleep 0.1");
  const Ran set = berth(system.served().folder(),
                        {"policy", "set", "qssf", "--server", system.served().socket()});
  EXPECT_EQ(set.exit, 0) << set.err;
  expect_order_by_history(system);
}

// On one GPU `train` was shorter than `eval`, on two it was longer: what recurs is user, name and
// number of GPUs.
TEST(Pai, AJobThatRecursRunsAsLongAsLastTime) {
  System system{{.policy = "pai", .slots = 2}};
  const auto run = [&](const std::string& name, int gpus, const std::string& text) {
    const auto job = system.submit(said(system.script(name, text), gpus, 0));
    EXPECT_EQ(system.ended(job)["state"], "completed");
  };
  run("train", 2, "sleep 1.5");
  run("eval", 1, "sleep 0.6");
  run("train", 1, "sleep 0.1");
  system.restart();
  const auto beside = system.submit(system.script("beside", steps_until("end")));
  const auto holder = system.submit(system.script("holder", steps_until("go")));
  system.until("both run",
               [&] { return system.steps("beside") > 0 && system.steps("holder") > 0; });
  const auto second = system.submit(system.script("eval", "begun"));
  const auto first = system.submit(system.script("train", "begun"));
  system.tell("go");
  for (const auto job : {holder, second, first}) static_cast<void>(system.ended(job));
  EXPECT_EQ(system.order(), "train eval");
  system.tell("end");
  static_cast<void>(system.ended(beside));
}

// Shorter jobs go first until somebody has waited too long; how long that is, is not counted from a
// restart.
TEST(Pai, WhoHasWaitedTooLongGoesFirstAlsoAfterARestart) {
  System system{{.policy = "pai", .settings = {{"aging", "1"}, {"least_wait", "4"}}}};
  for (const auto& [name, text] : {std::pair{"eval", "sleep 1"}, std::pair{"train", "true"}})
    EXPECT_EQ(system.ended(system.submit(system.script(name, text)))["state"], "completed");
  const auto holder = system.submit(system.script("holder", steps_until("go")));
  system.until("it runs", [&] { return system.steps("holder") > 0; });
  const auto first = system.submit(system.script("eval", "begun"));
  const int before = system.steps("holder");  // of 50 ms at least
  system.until("it has waited too long", [&] { return system.steps("holder") > before + 90; });
  const auto second = system.submit(system.script("train", "begun"));
  system.restart();
  system.tell("go");
  for (const auto job : {holder, first, second}) static_cast<void>(system.ended(job));
  EXPECT_EQ(system.order(), "eval train");
}

// Two devices. A short job fits before the reservation of the head and starts at once, a long one
// would delay it and waits for its end.
TEST(Easy, AShortJobStartsInTheGapAndALongOneDoesNot) {
  System system{{.policy = "easy", .slots = 2, .more = "estimator: limit\n"}};
  const auto script = [&](const std::string& name, const std::string& text) {
    return system.script(name, "begun; " + text);
  };
  const auto holder = system.submit(said(script("holder", steps_until("go")), 1, 60));
  system.until("it runs", [&] { return system.order() == "holder"; });
  const auto head = system.submit(said(script("head", "sleep 0.2"), 2, 10));
  const auto far = system.submit(said(script("long", "true"), 1, 600));
  const auto brief = system.submit(said(script("short", "true"), 1, 5));
  EXPECT_EQ(system.ended(brief)["state"], "completed");
  EXPECT_TRUE(system.is(holder, "running"));
  EXPECT_TRUE(system.is(head, "pending"));
  system.tell("go");
  for (const auto job : {holder, head, far}) static_cast<void>(system.ended(job));
  EXPECT_EQ(system.order(), "holder short head long");
}

// Three devices, one of them free. The head needs two of them later, so that a long job on the
// third one would not delay the head, but whoever waits behind it for all three: that one has a
// reservation too.
TEST(Conservative, EverybodyWhoWaitsHasAReservation) {
  System system{{.policy = "conservative", .slots = 3, .more = "estimator: limit\n"}};
  const auto script = [&](const std::string& name, const std::string& text) {
    return system.script(name, "begun; " + text);
  };
  const auto holder = system.submit(said(script("holder", steps_until("go")), 2, 60));
  system.until("it runs", [&] { return system.order() == "holder"; });
  const auto head = system.submit(said(script("head", "sleep 0.2"), 2, 10));
  const auto wide = system.submit(said(script("wide", "sleep 0.2"), 3, 10));
  const auto far = system.submit(said(script("long", "true"), 1, 600));
  const auto brief = system.submit(said(script("short", "true"), 1, 5));
  EXPECT_EQ(system.ended(brief)["state"], "completed");
  EXPECT_TRUE(system.is(holder, "running"));
  system.tell("go");
  for (const auto job : {holder, head, wide, far}) static_cast<void>(system.ended(job));
  EXPECT_EQ(system.order(), "holder short head wide long");
}

// The long job cannot end before the short one has.
TEST(Srtf, AShorterJobTakesThePlaceOfALongerOne) {
  System system{{.policy = "srtf", .more = "estimator: limit\n"}};
  const auto far = system.submit(said(system.script("long", steps_until("enough")), 1, 600));
  system.until("it runs", [&] { return system.steps("long") > 0; });
  const auto brief = system.submit(said(system.script("short", "true"), 1, 5));
  EXPECT_EQ(system.ended(brief)["state"], "completed");
  system.tell("enough");
  EXPECT_EQ(system.ended(far)["preemptions"], 1);
}

TEST(Priority, AnUrgentJobTakesThePlaceOfAnother) {
  System system{{.policy = "priority", .settings = {{"preempt_classes", "all"}}}};
  const auto usual = system.submit(system.script("usual", steps_until("enough")));
  system.until("it runs", [&] { return system.steps("usual") > 0; });
  json urgent = system.script("urgent", "true");
  urgent["priority"] = 10;
  EXPECT_EQ(system.ended(system.submit(urgent))["state"], "completed");
  system.tell("enough");
  EXPECT_EQ(system.ended(usual)["preemptions"], 1);
}

TEST(Priority, TheMostUrgentOfThoseThatWaitGoesFirst) {
  System system{{.policy = "priority"}};
  std::vector<System::Job> jobs{system.submit(system.script("holder", steps_until("go")))};
  system.until("it runs", [&] { return system.steps("holder") > 0; });
  for (const auto& [name, priority] : {std::pair{"calm", 0}, {"urgent", 10}, {"brisk", 5}}) {
    json job = system.script(name, "begun");
    job["priority"] = priority;
    jobs.push_back(system.submit(job));
  }
  system.tell("go");
  for (const auto job : jobs) EXPECT_EQ(system.ended(job)["preemptions"], 0);
  EXPECT_EQ(system.order(), "urgent brisk calm");
}

TEST(Sjf, TheShortestOfThoseThatWaitGoesFirst) {
  System system{{.policy = "sjf", .more = "estimator: limit\n"}};
  const auto holder = system.submit(said(system.script("holder", steps_until("go")), 1, 600));
  system.until("it runs", [&] { return system.steps("holder") > 0; });
  std::vector<System::Job> jobs{holder};
  for (const auto& [name, seconds] : {std::pair{"long", 60}, {"middle", 30}, {"short", 10}})
    jobs.push_back(system.submit(said(system.script(name, "begun"), 1, seconds)));
  system.tell("go");
  for (const auto job : jobs) EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(system.order(), "short middle long");
}

// Who has used less goes first, although it came later; what was used survives a kill -9.
TEST(FairShare, WhoHasUsedLessGoesFirst) {
  if (!can_have_users()) GTEST_SKIP() << "needs the right to mount in a namespace";
  System system{{.policy = "fair-share", .settings = {{"advance", "0"}}, .users = {"ann", "bob"}}};
  const auto of = [&](const std::string& user, const std::string& name, const std::string& text) {
    json job = system.script(name, "begun; " + text);
    job["user"] = user;
    return system.submit(job);
  };
  static_cast<void>(system.ended(of("bob", "light", "true")));
  static_cast<void>(system.ended(of("ann", "heavy", "sleep 1")));
  system.restart();
  const auto holder = of("bob", "holder", steps_until("go"));
  system.until("it runs", [&] { return system.steps("holder") > 0; });
  const auto second = of("ann", "ann-2", "true");
  const auto first = of("bob", "bob-2", "true");
  system.tell("go");
  for (const auto job : {holder, second, first}) static_cast<void>(system.ended(job));
  EXPECT_EQ(system.order(), "light heavy holder bob-2 ann-2");
}

}  // namespace
}  // namespace berth::test::queues_tests
