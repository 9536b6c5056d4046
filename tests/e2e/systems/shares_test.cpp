// Systems whose point is how devices, cores and time are shared out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include <sched.h>

#include <fmt/format.h>

#include "e2e/systems/system.h"

namespace berth::test::shares_tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Two servers of two devices, one job left on each: a gang of two fits on neither until one of
// them moves. Neither of them is over before the gang is.
TEST(Gandiva, AJobMovesToMakeRoomForAGang) {
  System system{{.policy = "gandiva",
                 .settings = {{"tick", "1"},
                              {"slice", "600"},
                              {"migrate_cooldown", "1"},
                              {"migration_cost", "0.1"},
                              {"defrag_threshold", "0.5"}},
                 .cluster = "2x2"}};
  std::map<std::string, std::vector<System::Job>> by_node;
  for (const char* name : {"a", "b", "c", "d"}) {
    const auto job = system.submit(system.script(name, steps_until("enough")));
    system.until("it runs", [&] { return system.steps(name) > 0; });
    by_node[system.view(job)["where"][0]["node"]].push_back(job);
  }
  ASSERT_EQ(by_node.size(), 2U);
  std::vector<System::Job> left;
  for (const auto& [node, jobs] : by_node) {
    ASSERT_EQ(jobs.size(), 2U);
    system.cancel(jobs[0]);
    left.push_back(jobs[1]);
  }
  json gang = system.script("gang", "echo $BERTH_NODES > $COUNT");
  gang["gpus"] = 2;
  EXPECT_EQ(system.ended(system.submit(gang))["state"], "completed");
  system.until("both run on one node", [&] {
    std::set<std::string> nodes;
    for (const auto job : left) {
      const json record = system.view(job);
      nodes.insert(record["state"] == "running" ? record["where"][0]["node"] : record["state"]);
    }
    return nodes.size() == 1 && by_node.contains(*nodes.begin());
  });
}

// One job, four devices: it takes what nobody else wants.
TEST(Gandiva, AJobGrowsOntoIdleDevices) {
  System system{{.policy = "gandiva",
                 .settings = {{"tick", "1"}, {"idle_period", "1"}, {"resize_cost", "0.1"}},
                 .slots = 4}};
  json elastic =
      system.script("elastic", "echo $BERTH_GPUS >> $FOLDER/sizes; " + steps_until("enough"));
  elastic["gpus_min"] = 1;
  elastic["gpus_max"] = 4;
  const auto job = system.submit(elastic);
  system.until("it has all four", [&] { return system.view(job)["granted"] == 4; });
  system.tell("enough");
  EXPECT_EQ(system.ended(job)["state"], "completed");
  EXPECT_EQ(system.served().folder().read("sizes"), "1\n2\n4\n");
}

// One device. Ann has three jobs and Bob one; Bob makes as many steps as Ann.
TEST(GandivaFair, UsersShareNotJobs) {
  if (!can_have_users()) GTEST_SKIP() << "needs the right to mount in a namespace";
  System system{{.policy = "gandiva-fair",
                 .settings = {{"quantum", "0.5"}, {"switch_cost", "0"}, {"migration_cost", "0"}},
                 .users = {"ann", "bob"}}};
  const auto submit = [&](const std::string& user, const std::string& name) {
    json job = system.script(name, steps_until("enough"));
    job["user"] = user;
    return system.submit(job);
  };
  for (const char* name : {"ann-1", "ann-2", "ann-3"}) static_cast<void>(submit("ann", name));
  static_cast<void>(submit("bob", "bob-1"));
  const auto ann = [&] {
    return system.steps("ann-1") + system.steps("ann-2") + system.steps("ann-3");
  };
  const auto bob = [&] { return system.steps("bob-1"); };
  system.until("both have had a turn", [&] { return ann() > 0 && bob() > 0; });
  const int ann_before = ann();
  const int bob_before = bob();
  system.until("a dozen turns are over",
               [&] { return ann() + bob() > ann_before + bob_before + 120; });
  const double ratio = static_cast<double>(bob() - bob_before) / (ann() - ann_before);
  EXPECT_GT(ratio, 0.6);  // by jobs it would be a third
  EXPECT_LT(ratio, 1.6);
}

// A job whose lease has ended makes way for one that is worse off.
TEST(Agents, WhoIsWorseOffBuysWhatALeaseReturns) {
  System system{{.policy = "agents",
                 .settings = {{"lease", "1"}, {"interval", "0.5"}},
                 .more = "estimator: limit\n"}};
  json holder = system.script("holder", "begun; " + steps_until("enough"));
  holder["estimate"] = 100;
  const auto first = system.submit(holder);
  system.until("it runs", [&] { return system.steps("holder") > 0; });
  json brief = system.script("brief", "begun; " + steps_script(10));
  brief["estimate"] = 1;
  const auto second = system.submit(brief);
  EXPECT_EQ(system.ended(second)["state"], "completed");
  EXPECT_FALSE(system.served().is_over(first));
  system.until("it is back", [&] { return system.order() == "holder brief holder"; });
  system.tell("enough");
  EXPECT_EQ(system.ended(first)["state"], "completed");
}

// Neither of two long jobs on one device is done before the other has had its rounds.
TEST(Shockwave, ATurnForEverybodyInAWindow) {
  System system{{.policy = "shockwave",
                 .settings = {{"round", "1"}, {"window", "6"}},
                 .more = "estimator: limit\n"}};
  for (const char* name : {"first", "second"}) {
    json job = system.script(name, "begun; " + steps_until("enough"));
    job["estimate"] = 30;
    static_cast<void>(system.submit(job));
  }
  system.until("both get on",
               [&] { return system.steps("first") > 40 && system.steps("second") > 40; });
  EXPECT_TRUE(system.order().starts_with("first second")) << system.order();
  system.tell("enough");
}

// Cores by need: a model that gains nothing by a second core gets one although two are free; one
// that is hungry gets the second while nobody has a right to it.
TEST(Synergy, CoresGoWhereTheySpeedJobsUp) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ASSERT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
  if (CPU_COUNT(&cores) < 2) GTEST_SKIP() << "needs two cores to share out";
  const TempFolder place;
  System system{
      {.policy = "synergy",
       .settings = {{"round", "1"}},
       .cluster = place.file("cluster.yaml", "groups: [{count: 1, gpus: 2, cpus: 2}]\n")}};
  const auto submit = [&](const std::string& name, const std::string& model) {
    json job = system.script(name, "until told " + name + "; do nproc >> $COUNT; sleep 0.05; done");
    if (!model.empty()) job["model"] = model;
    const auto number = system.submit(job);
    system.until("it runs", [&] { return system.steps(name) > 0; });
    return number;
  };
  const auto modest = submit("modest", "");
  const auto hungry = submit("hungry", "resnet-18");
  system.tell("modest");
  static_cast<void>(system.ended(modest));
  system.until("it has both cores", [&] { return system.counted("hungry").ends_with("2\n"); });
  EXPECT_EQ(system.counted("modest").find('2'), std::string::npos);
  EXPECT_TRUE(system.counted("hungry").starts_with("1\n"));
  const auto third = submit("third", "");
  system.until("it gives back what is not its own",
               [&] { return system.counted("hungry").ends_with("1\n"); });
  for (const char* name : {"third", "hungry"}) system.tell(name);
  for (const auto job : {third, hungry}) EXPECT_EQ(system.ended(job)["attempts"], 1);
}

// Four devices and 13 cores. Ann's jobs take six cores each, so that one of them weighs as much as
// two of Bob's: he gets three devices and she one. By devices alone it would be two of hers.
TEST(Drf, TheDominantResourceDecides) {
  if (!can_have_users()) GTEST_SKIP() << "needs the right to mount in a namespace";
  const TempFolder place;
  System system{{.policy = "drf",
                 .cluster = place.file("cluster.yaml", "groups: [{count: 1, gpus: 4, cpus: 13}]\n"),
                 .users = {"ann", "bob"}}};
  json all = system.script("holder", steps_until("go"));
  all["gpus"] = 4;
  const auto holder = system.submit(all);
  system.until("it runs", [&] { return system.steps("holder") > 0; });
  for (int i = 0; i < 4; ++i) {
    for (const auto& [user, cpus] : {std::pair{"ann", 6}, std::pair{"bob", 1}}) {
      json job = system.script(fmt::format("{}-{}", user, i), "begun; " + steps_until("enough"));
      job["user"] = user;
      job["cpus"] = cpus;
      static_cast<void>(system.submit(job));
    }
  }
  system.tell("go");
  static_cast<void>(system.ended(holder));
  system.until("four run", [&] { return std::ranges::count(system.order(), '-') == 4; });
  EXPECT_EQ(std::ranges::count(system.order(), 'a'), 1) << system.order();
  system.tell("enough");
}

class Capacity : public ::testing::Test {
 protected:
  json job(const std::string& name, const std::string& queue, const std::string& text) {
    json job = system.script(name, text);
    job["queue"] = queue;
    return job;
  }
  System system{{.policy = "capacity",
                 .settings = {{"queues", "prod:0.5,dev:0.5,tiny:0:0.25"}, {"preemption", "on"}},
                 .slots = 4,
                 .more = "queues: [{name: prod}, {name: dev}, {name: tiny}]\n"}};
};

// Idle devices are lent; the queue that owns them takes them back, and no more than it owns.
TEST_F(Capacity, AQueueTakesBackWhatItIsGuaranteed) {
  std::vector<System::Job> lent;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("dev-{}", i);
    lent.push_back(system.submit(job(name, "dev", steps_until("enough"))));
    system.until("it runs", [&] { return system.steps(name) > 0; });
  }
  for (int i = 0; i < 3; ++i)
    static_cast<void>(system.submit(job(fmt::format("prod-{}", i), "prod", steps_until("enough"))));
  system.until("it has its half", [&] { return system.steps("prod-1") > 0; });
  EXPECT_EQ(system.steps("prod-2"), 0);
  int preempted = 0;
  for (const auto number : lent) preempted += system.view(number)["preemptions"].get<int>();
  EXPECT_EQ(preempted, 2);
  system.tell("enough");
}

TEST_F(Capacity, AQueueHasNoMoreThanItsMost) {
  const auto first = system.submit(job("first", "tiny", "begun; " + steps_until("enough")));
  system.until("it runs", [&] { return system.steps("first") > 0; });
  const auto second = system.submit(job("second", "tiny", "begun"));
  EXPECT_EQ(system.ended(system.submit(job("other", "dev", "begun")))["state"], "completed");
  EXPECT_TRUE(system.is(second, "pending"));
  json wide = job("wide", "tiny", "true");
  wide["gpus"] = 2;
  EXPECT_THAT(system.refusal(wide), HasSubstr("policy capacity refuses it: "));
  system.tell("enough");
  for (const auto number : {first, second}) EXPECT_EQ(system.ended(number)["state"], "completed");
  EXPECT_EQ(system.order(), "first other second");
}

// Two jobs of 0.4 devices are on one at a time, a third one is not.
TEST(Fgd, PartsOfADeviceAreGivenOut) {
  System system{{.policy = "fifo-skip", .more = "placement: fgd\n"}};
  std::vector<System::Job> jobs;
  for (const char* name : {"first", "second", "third"}) {
    json job = system.script(name, "begun; " + steps_until(name));
    job["gpu_milli"] = 400;
    jobs.push_back(system.submit(job));
  }
  system.until("two run", [&] { return system.steps("first") > 0 && system.steps("second") > 0; });
  EXPECT_TRUE(system.is(jobs[2], "pending"));
  system.tell("first");
  system.until("the third runs", [&] { return system.steps("third") > 0; });
  EXPECT_FALSE(system.served().is_over(jobs[1]));
  for (const char* name : {"second", "third"}) system.tell(name);
  for (const auto job : jobs) EXPECT_EQ(system.ended(job)["state"], "completed");
}

// 0.3 of the first device are free and 0.4 of the second. A job of 0.1 goes to the second, where it
// leaves no more than the usual jobs can use: both of 0.3 find room. On the device with the least
// room, or on the first, it would leave room for one.
TEST(Fgd, APartGoesWhereItLeavesRoomForTheUsualJobs) {
  System system{{.policy = "fifo-skip", .slots = 2, .more = "placement: fgd\n"}};
  const auto submit = [&](const std::string& name, int milli) {
    json job = system.script(
        name, "echo $BERTH_DEVICES > $FOLDER/device." + name + "; " + steps_until("enough"));
    job["gpu_milli"] = milli;
    const auto number = system.submit(job);
    system.until("it runs", [&] { return system.steps(name) > 0; });
    return number;
  };
  json usual = system.script("usual-0", "true");  // what was placed first tells what is usual
  usual["gpu_milli"] = 300;
  EXPECT_EQ(system.ended(system.submit(usual))["state"], "completed");
  std::vector<System::Job> jobs;
  for (const auto& [name, milli] :
       {std::pair{"most", 700}, {"more", 600}, {"little", 100}, {"usual-1", 300}, {"usual-2", 300}})
    jobs.push_back(submit(name, milli));
  const auto device = [&](const std::string& name) {
    return system.served().folder().read("device." + name);
  };
  EXPECT_NE(device("most"), device("more"));
  EXPECT_EQ(device("little"), device("more"));
  for (const auto job : jobs) EXPECT_TRUE(system.is(job, "running"));
  system.tell("enough");
  for (const auto job : jobs) EXPECT_EQ(system.ended(job)["state"], "completed");
}

// It grows on what is idle and gives it back to whoever has a right to what it asked for.
TEST(Rubick, AJobGrowsAndShrinksToWhatItWasPromised) {
  System system{{.policy = "rubick", .settings = {{"restart", "0.1"}}, .slots = 4}};
  json elastic =
      system.script("elastic", "echo $BERTH_GPUS >> $FOLDER/sizes; " + steps_until("enough"));
  elastic["gpus_min"] = 1;
  elastic["gpus_max"] = 4;
  elastic["model"] = "resnet-50";
  const auto first = system.submit(elastic);
  const auto sizes = [&] {
    const TempFolder& folder = system.served().folder();
    return folder.has("sizes") ? folder.read("sizes") : "";
  };
  system.until("it has all four", [&] { return sizes().ends_with("4\n"); });
  json rigid = system.script("rigid", steps_until("enough"));
  rigid["gpus"] = 3;
  rigid["model"] = "resnet-50";
  const auto second = system.submit(rigid);
  system.until("both run",
               [&] { return system.steps("rigid") > 0 && sizes().ends_with("4\n1\n"); });
  system.tell("enough");
  for (const auto job : {first, second}) EXPECT_EQ(system.ended(job)["state"], "completed");
}

}  // namespace
}  // namespace berth::test::shares_tests
