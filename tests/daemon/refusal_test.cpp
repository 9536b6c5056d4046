// A policy may refuse a job that fits the cluster. Whoever submits it hears that before it is taken
// where it can be known, and otherwise that it may happen and afterwards why.
#include <gtest/gtest.h>

#include "support/live_world.h"

namespace berth::test {
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
}  // namespace berth::test
