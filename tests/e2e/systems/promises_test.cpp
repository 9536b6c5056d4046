// Systems whose point is a promise: by a time, for a price, of devices; and a refusal in advance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include <fmt/format.h>

#include "e2e/systems/system.h"

namespace berth::test::promises_tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::int64_t in_seconds(int seconds) {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() +
         seconds;
}

json due(json job, int estimate, int seconds) {
  job["estimate"] = estimate;
  job["deadline"] = in_seconds(seconds);
  return job;
}

/// The end of a job that had one, against it: below zero, it was in time.
double lateness(const json& record) {
  return 1e-6 * record["ended"].get<double>() - record["spec"]["deadline"].get<double>();
}

// The job without a deadline cannot end before the other has run. It is the shorter one by what is
// said, so that only the deadline puts the other first.
TEST(Chronus, ADeadlineIsMetByPreemptingBestEffort) {
  System system{{.policy = "chronus",
                 .settings = {{"lease", "2"}, {"restart", "0.5"}},
                 .more = "estimator: limit\n"}};
  json free = system.script("best-effort", "begun; " + steps_until("enough"));
  free["estimate"] = 3;
  const auto best_effort = system.submit(free);
  system.until("it runs", [&] { return system.steps("best-effort") > 0; });
  const auto strict =
      system.submit(due(system.script("strict", "begun; " + steps_script(20)), 4, 30));
  system.restart();
  const json record = system.ended(strict);
  EXPECT_EQ(record["state"], "completed");
  EXPECT_LT(lateness(record), 0);
  system.until("best effort comes back",
               [&] { return system.order() == "best-effort strict best-effort"; });
  system.tell("enough");
  EXPECT_EQ(system.ended(best_effort)["state"], "completed");
}

// The holder has every lease until it ends. Of those who wait without a deadline the shortest goes
// first, unless somebody has waited for too many leases; they are not counted from a restart.
TEST(Chronus, WhoHasWaitedTooLongGoesFirstAlsoAfterARestart) {
  System system{{.policy = "chronus",
                 .settings = {{"lease", "2"}, {"restart", "0.5"}, {"be_starve", "2"}},
                 .more = "estimator: limit\n"}};
  const auto holder =
      system.submit(due(system.script("holder", "begun; " + steps_until("go")), 60, 90));
  system.until("it runs", [&] { return system.steps("holder") > 0; });
  const auto waiting = [&](const std::string& name, int estimate) {
    json job = system.script(name, "begun");
    job["estimate"] = estimate;
    return system.submit(job);
  };
  const auto first = waiting("long", 500);
  // Steps of 50 ms at least; who waits is looked at where a lease begins, so two may be three.
  const int before = system.steps("holder");
  system.until("it has waited too long", [&] { return system.steps("holder") > before + 130; });
  const auto second = waiting("short", 1);
  system.restart();
  system.tell("go");
  for (const auto job : {holder, first, second}) EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(system.order(), "holder long short");
}

TEST(Chronus, WhatCannotBePromisedIsRefusedInAdvance) {
  System system{{.policy = "chronus",
                 .settings = {{"lease", "2"}, {"restart", "0.5"}},
                 .more = "estimator: limit\n"}};
  const std::string too_long = system.refusal(due(system.script("too-long", "true"), 100, 50));
  EXPECT_THAT(too_long, HasSubstr("policy chronus refuses it: needs 70 leases of 2.0 s"));
  const auto promised =
      system.submit(due(system.script("promised", steps_until("enough")), 40, 70));
  system.until("it runs", [&] { return system.steps("promised") > 0; });
  const std::string no_room = system.refusal(due(system.script("no-room", "true"), 40, 70));
  EXPECT_THAT(no_room, HasSubstr("1 promised jobs leave"));
  system.tell("enough");
  EXPECT_EQ(system.ended(promised)["state"], "completed");
}

// Whoever has been told that the policy is set submits at once: its engine has not begun yet.
TEST(Chronus, RefusesFromTheMomentInWhichItIsSet) {
  System system{{.policy = "fifo", .more = "estimator: limit\n"}};
  for (int i = 0; i < 10; ++i) {
    for (const char* policy : {"fifo", "chronus"}) {
      const auto set = system.served().ask("PUT", "/api/v1/policy", {{"policy", policy}});
      ASSERT_TRUE(set && set->status == 200) << (set ? set->body : "");
    }
    const std::string told = system.refusal(due(system.script("hopeless", "true"), 10'000, 50));
    EXPECT_THAT(told, HasSubstr("policy chronus refuses it"));
  }
}

class ElasticFlow : public ::testing::Test {
 protected:
  /// Two devices with a job without a deadline on each; then one that is elastic and has one.
  json run(int estimate, int seconds) {
    for (const char* name : {"free-1", "free-2"}) {
      json job = system.script(name, steps_until("enough"));
      job["estimate"] = 1000;
      free.push_back(system.submit(job));
      system.until("it runs", [&] { return system.steps(name) > 0; });
    }
    json elastic =
        due(system.script("strict", "echo $BERTH_GPUS >> $FOLDER/sizes; " + steps_until("done")),
            estimate, seconds);
    elastic["gpus_min"] = 1;
    elastic["gpus_max"] = 2;
    const auto strict = system.submit(elastic);
    system.until("it runs", [&] { return system.steps("strict") > 30; });
    system.tell("done");
    return system.ended(strict);
  }
  int preempted() {
    int times = 0;
    for (const auto job : free) times += system.view(job)["preemptions"].get<int>();
    return times;
  }

  System system{{.policy = "elasticflow",
                 .settings = {{"slot", "1"}},
                 .slots = 2,
                 .more = "estimator: limit\n"}};
  std::vector<System::Job> free;
};

TEST_F(ElasticFlow, ALooseDeadlineTakesOneDeviceFromBestEffort) {
  const json record = run(4, 40);
  EXPECT_EQ(record["state"], "completed");
  EXPECT_LT(lateness(record), 0);
  EXPECT_EQ(system.served().folder().read("sizes"), "1\n");
  EXPECT_EQ(preempted(), 1);
}

TEST_F(ElasticFlow, ATightDeadlineTakesBoth) {
  const json record = run(30, 25);
  EXPECT_EQ(record["state"], "completed");
  EXPECT_LT(lateness(record), 0);
  EXPECT_EQ(system.served().folder().read("sizes"), "2\n");
  EXPECT_EQ(preempted(), 2);
}

TEST_F(ElasticFlow, WhatCannotBePromisedIsRefusedInAdvance) {
  const auto promised =
      system.submit(due(system.script("promised", steps_until("enough")), 30, 40));
  json other = due(system.script("other", steps_until("enough")), 30, 40);
  static_cast<void>(system.submit(other));
  system.restart();
  const std::string refusal = system.refusal(due(system.script("third", "true"), 20, 40));
  EXPECT_THAT(refusal, HasSubstr("policy elasticflow refuses it: needs 21.0 s on up to 1 GPUs"));
  EXPECT_THAT(refusal, HasSubstr("beside 2 promised jobs"));
  system.tell("enough");
  EXPECT_EQ(system.ended(promised)["state"], "completed");
}

// One device, sold slot by slot. What was sold is kept, whoever comes, and over a kill -9; who
// would have to pay more than it is worth is refused.
TEST(Oasis, WhatIsSoldIsKeptAndWhoCannotPayIsRefused) {
  System system{{.policy = "oasis",
                 .settings = {{"slot", "1"}, {"price_low", "0.001"}, {"price_high", "50"}},
                 .more = "estimator: limit\n"}};
  const auto first = system.submit(due(system.script("first", steps_script(40)), 4, 30));
  system.until("it runs", [&] { return system.steps("first") > 0; });
  const auto second = system.submit(due(system.script("second", steps_script(30)), 4, 20));
  system.restart();
  json rich = due(system.script("rich", "true"), 8, 12);
  rich["weight"] = 1000;
  EXPECT_THAT(system.refusal(rich), HasSubstr("policy oasis refuses it: its 8.0 s of work"));
  json poor = system.script("poor", "true");
  poor["estimate"] = 2;
  poor["weight"] = 0.0001;
  EXPECT_THAT(system.refusal(poor), HasSubstr("policy oasis refuses it: "));
  for (const auto job : {first, second}) {
    const json record = system.ended(job);
    EXPECT_EQ(record["state"], "completed");
    EXPECT_LT(lateness(record), 0);
    EXPECT_EQ(record["preemptions"], 0);
  }
}

// A job that has started is never stopped; what is longer than every window is refused.
TEST(Aonline, WhatIsPlannedRunsToItsEndAndTheTooLongIsRefused) {
  System system{{.policy = "aonline",
                 .settings = {{"slot", "1"}, {"max_window", "8"}, {"too_long", "reject"}},
                 .more = "estimator: limit\n"}};
  const auto planned = [&](const std::string& name, double weight) {
    json job = system.script(name, "begun; " + steps_until("go"));
    job["estimate"] = 2;
    job["weight"] = weight;
    return system.submit(job);
  };
  const auto holder = planned("holder", 1);
  system.until("it runs", [&] { return system.order() == "holder"; });
  const auto light = planned("light", 1);
  const auto heavy = planned("heavy", 100);
  system.restart();
  json eternal = system.script("eternal", "true");
  eternal["estimate"] = 100;
  EXPECT_THAT(system.refusal(eternal),
              HasSubstr("policy aonline refuses it: needs 100 slots of 1.0 s at its fastest"));
  system.tell("go");
  for (const auto job : {holder, light, heavy}) {
    const json record = system.ended(job);
    EXPECT_EQ(record["state"], "completed");
    EXPECT_EQ(record["preemptions"], 0);
  }
  EXPECT_EQ(system.order(), "holder heavy light");
}

// The first window has a slot: the opener's. The holder and the light job are planned in the second
// one, which has two. Whoever comes then waits for the third, however heavy: a plan that was made
// is carried out, over a kill -9 too, while an engine that began anew would put the heavy one
// first.
TEST(Aonline, WhatIsPlannedIsNotPlannedAgainAfterARestart) {
  System system{{.policy = "aonline",
                 .settings = {{"slot", "20"}, {"max_window", "8"}, {"ahead", "on"}},
                 .more = "estimator: limit\n"}};
  std::vector<System::Job> jobs;
  const auto submit = [&](const std::string& name, double weight) {
    json job = system.script(name, "begun; " + steps_until("end-" + name));
    job["estimate"] = 2;
    job["weight"] = weight;
    jobs.push_back(system.submit(job));
  };
  submit("opener", 1);
  system.until("it runs", [&] { return system.order() == "opener"; });
  submit("holder", 10);
  submit("light", 1);
  system.tell("end-opener");
  system.until("the second window is planned", [&] { return system.order() == "opener holder"; });
  submit("heavy", 100);
  system.restart();
  for (const char* name : {"holder", "light", "heavy"}) system.tell(std::string{"end-"} + name);
  for (const auto job : jobs) EXPECT_EQ(system.ended(job)["preemptions"], 0);
  EXPECT_EQ(system.order(), "opener holder light heavy");
}

// The lab owns two of four devices, which guests fill meanwhile. When it comes, two guests make way
// and the other two are left alone.
TEST(Hived, ATenantsCellIsThere) {
  System system{{.policy = "hived", .settings = {{"cells", "lab:2x1"}}, .slots = 4}};
  std::vector<System::Job> guests;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("guest-{}", i);
    guests.push_back(system.submit(system.script(name, steps_until("enough"))));
    system.until("it runs", [&] { return system.steps(name) > 0; });
  }
  json owner = system.script("owner", "echo $BERTH_DEVICES > $COUNT");
  owner["gpus"] = 2;
  owner["group"] = "lab";
  EXPECT_EQ(system.ended(system.submit(owner))["state"], "completed");
  EXPECT_TRUE(system.counted("owner") == "0,1\n" || system.counted("owner") == "2,3\n")
      << system.counted("owner");
  int preempted = 0;
  for (const auto guest : guests) preempted += system.view(guest)["preemptions"].get<int>();
  EXPECT_EQ(preempted, 2);
}

}  // namespace
}  // namespace berth::test::promises_tests
