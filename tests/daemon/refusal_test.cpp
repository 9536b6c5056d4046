// A policy may refuse a job that fits the cluster. Whoever submits it hears that before it is taken
// where it can be known, and otherwise that it may happen and afterwards why.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test::refusal_tests {
namespace {

/// Two hours of work in ten minutes.
JobSpec hopeless(const LiveWorld& world) {
  JobSpec spec = spec_of({"run", "10"});
  spec.time_limit = 7200;
  spec.deadline = world.wall_micros() / 1'000'000 + 600;
  return spec;
}

TEST(Refusal, IsKnownBeforeTheJobIsTaken) {
  for (const char* policy : {"chronus", "elasticflow"}) {
    SCOPED_TRACE(policy);
    LiveWorld world{{.cluster = "1x1", .scheduling = {.policy = {.policy = policy}}}};
    world.at(1, [&](LiveService&) {
      const auto said = world.refusal_of(hopeless(world));
      ASSERT_TRUE(said);
      EXPECT_NE(said->find("deadline"), std::string::npos) << *said;
      EXPECT_FALSE(world.refusal_of(spec_of({"run", "10"})));
    });
    world.run();
    EXPECT_EQ(world.violations(), std::vector<std::string>{});
    EXPECT_TRUE(world.over().empty()) << "only a copy was asked";
  }
}

TEST(Refusal, OfAJobThatComesLaterIsToldWhenItComes) {
  LiveWorld world{{.cluster = "1x1", .scheduling = {.policy = {.policy = "chronus"}}}};
  JobNumber job = 0;
  world.at(1, [&](LiveService& service) {
    JobSpec spec = hopeless(world);
    spec.hold = true;
    const auto answer = service.submit(kRoot, spec);
    ASSERT_TRUE(answer);
    job = answer->first;
    world.acknowledge({}, *answer);
    ASSERT_EQ(answer->notes.size(), 1U);
    EXPECT_NE(answer->notes.front().find("policy chronus decides"), std::string::npos);
  });
  world.at(5, [&](LiveService& service) {
    ASSERT_TRUE(service.act(kRoot, Verb::Release, {.states = {}, .numbers = {job}}, "", 0));
  });
  world.at(10, [&](LiveService& service) {
    const auto view = service.job(kRoot, job);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->state, LiveState::Rejected);
    EXPECT_NE(view->reason.find("leases"), std::string::npos) << view->reason;
  });
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

/// Whoever has set a policy that refuses, and then submits: what that one was told.
std::vector<std::string> told_under_a_new_policy(const std::string& before, bool sets_it_first) {
  LiveWorld world{
      {.cluster = "1x1", .scheduling = {.policy = {.policy = before}}, .asks_policy = true}};
  std::vector<std::string> told;
  world.at(1, [&](LiveService& service) {
    const auto set = [&] { ASSERT_TRUE(service.set_policy(kRoot, "chronus", {})); };
    if (sets_it_first) set();
    service.submit_async(kRoot, hopeless(world), [&](const Answer<Submitted>& answer) {
      told.push_back(answer ? "taken" : answer.error().messages.front());
    });
    if (!sets_it_first) set();  // before the policy that is in power has answered
  });
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
  EXPECT_TRUE(world.over().empty());
  return told;
}

TEST(Refusal, IsThatOfThePolicyThatIsSetAlsoBeforeItIsInPower) {
  for (const bool sets_it_first : {true, false}) {
    // The one refuses nobody, the other might refuse, and would not.
    const auto told = told_under_a_new_policy(sets_it_first ? "fifo" : "priority", sets_it_first);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_TRUE(told.front().starts_with("policy chronus refuses it")) << told.front();
  }
}

TEST(Refusal, IsNotSpokenOfWhereNobodyRefuses) {
  LiveWorld world{{}};
  world.at(1, [&](LiveService& service) {
    JobSpec spec = spec_of({"run", "1"});
    const auto answer = service.submit(kRoot, spec);
    ASSERT_TRUE(answer);
    world.acknowledge({}, *answer);
    EXPECT_TRUE(answer->notes.empty());
  });
  world.run();
  EXPECT_EQ(world.violations(), std::vector<std::string>{});
}

}  // namespace
}  // namespace berth::test::refusal_tests
