// What random lives have found of attempts that end, or are to end, while something else is under
// way with their job: each in its smallest form.
#include <gtest/gtest.h>

#include <string_view>

#include "support/live_world.h"

namespace berth::test::ending_tests {
namespace {

JobFilter only(JobNumber job) { return {.states = {}, .numbers = {job}}; }

void expect_clean(LiveWorld& world) { EXPECT_EQ(world.violations(), std::vector<std::string>{}); }

/// The scheduler finds all at once what has happened in some seconds.
WorldOptions often_away(const std::string& policy, std::uint64_t seed) {
  return {.cluster = "1x1",
          .scheduling = {.policy = {.policy = policy, .settings = {}}},
          .seed = seed,
          .oversleeping = {.most_micros = 1'000, .seconds = 0.5}};
}

// Life 17724: a job was held, its attempt failed, and the policy had it tried again. It was started
// before the engine heard that it is held, and the next job on the same device.
TEST(Found, AHeldJobThatThePolicyTriesAgainWaitsForItsRelease) {
  LiveWorld world{{.cluster = "1x1", .scheduling = {.policy = {.policy = "philly"}}}};
  JobNumber held = 0, next = 0;
  world.at(1, [&](LiveService& service) {
    held = world.submit(service, spec_of({"run", "10", "75"}));  // the cluster's fault
    next = world.submit(service, spec_of({"run", "20"}));
  });
  world.at(5, [&](LiveService& service) {
    static_cast<void>(service.act(kRoot, Verb::Hold, only(held), "", 0));
  });
  world.at(20, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, held)->state, LiveState::Held);
    EXPECT_EQ(service.job(kRoot, held)->attempts, 1);
    EXPECT_EQ(service.job(kRoot, next)->state, LiveState::Running);
  });
  world.at(100, [&](LiveService& service) {
    EXPECT_EQ(service.job(kRoot, held)->attempts, 1);
    static_cast<void>(service.act(kRoot, Verb::Release, only(held), "", 0));
  });
  world.run();
  expect_clean(world);
  EXPECT_EQ(world.over().at(held).state, LiveState::Failed);
  EXPECT_GT(world.over().at(held).attempts, 1);
  EXPECT_EQ(world.over().at(next).state, LiveState::Completed);
}

// The policy is to say whether a failed job is tried again, and in the same instant somebody
// cancels or holds it, or takes its node out of service.
TEST(Found, AWishThatComesWithAFailureCounts) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    for (const char* wish : {"cancel", "hold", "drain", "down"}) {
      SCOPED_TRACE(testing::Message() << wish << ", seed " << seed);
      LiveWorld world{often_away("philly", seed)};
      JobNumber failed = 0, next = 0;
      world.at(1, [&](LiveService& service) {
        JobSpec spec = spec_of({"run", "10", "75"});
        spec.max_retries = 1;
        failed = world.submit(service, spec);
        next = world.submit(service, spec_of({"run", "20"}));
      });
      world.at(13, [&](LiveService& service) {
        if (std::string_view{wish} == "cancel")
          static_cast<void>(service.act(kRoot, Verb::Cancel, only(failed), "", 0));
        else if (std::string_view{wish} == "hold")
          static_cast<void>(service.act(kRoot, Verb::Hold, only(failed), "", 0));
        else
          static_cast<void>(service.set_node(kRoot, "n0", wish, "test"));
      });
      world.at(100, [&](LiveService& service) {
        static_cast<void>(service.act(kRoot, Verb::Release, only(failed), "", 0));
        static_cast<void>(service.set_node(kRoot, "n0", "resume", ""));
      });
      world.run();
      expect_clean(world);
      EXPECT_EQ(world.over().size(), 2U);
      ASSERT_FALSE(HasFailure());
    }
  }
}

// A job that runs is brought into a new engine, and its end comes with it.
TEST(Found, AJobThatFailsWhileANewEngineTakesItUpIsTriedAgainOnce) {
  for (const double unrecorded : {0.0, 1.0}) {
    for (std::uint64_t passing = 4; passing <= 24; ++passing) {
      SCOPED_TRACE(testing::Message() << unrecorded << ", passing " << passing);
      LiveWorld world{{.cluster = "1x2", .host = {.dies_unrecorded = unrecorded}}};
      world.at(1, [&](LiveService& service) {
        for (int i = 0; i < 4; ++i) {
          JobSpec spec = spec_of({"run", "10", "75"});
          spec.max_retries = 1;
          spec.requeue = i % 2 == 0;
          static_cast<void>(world.submit(service, spec));
        }
      });
      world.at(5,
               [&](LiveService& service) { ASSERT_TRUE(service.set_policy(kRoot, "philly", {})); });
      world.at_point("store.committed", passing, [&](LiveService&) {
        for (int i = 0; i < 2; ++i) world.host().step(20'000'000);
      });
      world.at(1000, [&](LiveService& service) {  // what is lost again and again
        static_cast<void>(service.act(kRoot, Verb::Cancel, {}, "", 0));
      });
      world.run();
      expect_clean(world);
      EXPECT_EQ(world.over().size(), 4U);
      ASSERT_FALSE(HasFailure());
    }
  }
}

// Life 17262: a node was said to be down twice while a job was leaving it. Its start on another
// node was forgotten, and the engine took it for running for ever.
TEST(Found, AStartElsewhereOutlivesWhatIsDoneToTheLastAttempt) {
  for (const char* wish : {"down", "requeue"}) {
    SCOPED_TRACE(wish);
    LiveWorld world{{.cluster = "2x1"}};
    JobNumber job = 0;
    world.at(1, [&](LiveService& service) {
      JobSpec spec = spec_of({"stubborn", "100"});
      spec.grace_seconds = 30;
      job = world.submit(service, spec);
    });
    world.at(5, [](LiveService& service) {
      static_cast<void>(service.set_node(kRoot, "n0", "down", "test"));
    });
    world.at(10, [&](LiveService& service) {
      if (std::string_view{wish} == "requeue")
        static_cast<void>(service.act(kRoot, Verb::Requeue, only(job), "", 0));
      else
        static_cast<void>(service.set_node(kRoot, "n0", "down", "once more"));
    });
    world.at(50, [&](LiveService& service) {
      EXPECT_EQ(service.job(kRoot, job)->state, LiveState::Running);
    });
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(job).state, LiveState::Completed);
    EXPECT_EQ(world.over().at(job).attempts, 2);
  }
}

/// Code that could go on with other devices, once it says so, and never answers.
class NeverAnswers final : public TrainingChannel {
 public:
  [[nodiscard]] std::optional<TrainingReport> report(JobNumber) const override { return {}; }
  void losses(JobNumber, std::int64_t, std::vector<double>&) const override {}
  [[nodiscard]] bool has_saved(JobNumber) const override { return true; }
  [[nodiscard]] bool can_resize(JobNumber) const override { return says_so; }
  void ask_resize(JobNumber, const ResizeAsk&) override { is_asked = true; }
  void tell(JobNumber, const Terms&) override {}
  bool says_so = false;
  bool is_asked = false;
};

// A job on both nodes is asked to go on with one of them. Before it has answered a node goes, or a
// person wants it run again: to the engine it is where it was asked to be.
TEST(Found, AMoveInPlaceThatIsCutShortEndsElsewhere) {
  for (const char* wish : {"n0", "n1", "requeue"}) {
    SCOPED_TRACE(wish);
    NeverAnswers training;
    LiveWorld world{{.cluster = "2x1",
                     .scheduling = {.policy = {.policy = "elasticflow", .settings = {}}},
                     .training = &training}};
    JobNumber wide = 0, next = 0;
    world.at(1, [&](LiveService& service) {
      JobSpec spec = spec_of({"run", "1000"});
      spec.gpus_min = 1;
      spec.gpus_max = 2;
      spec.estimate = 1000;
      spec.model = "resnet50";
      wide = world.submit(service, spec);
    });
    world.at(100, [&](LiveService& service) {
      EXPECT_EQ(service.job(kRoot, wide)->where.size(), 2U);
      training.says_so = true;
      next = world.submit(service, spec_of({"run", "1000"}));
    });
    world.at(122, [&](LiveService& service) {
      EXPECT_TRUE(training.is_asked);
      if (std::string_view{wish} == "requeue")
        static_cast<void>(service.act(kRoot, Verb::Requeue, only(wide), "", 0));
      else
        static_cast<void>(service.set_node(kRoot, wish, "down", "test"));
    });
    world.run();
    expect_clean(world);
    EXPECT_EQ(world.over().at(wide).state, LiveState::Completed);
    EXPECT_EQ(world.over().at(next).state, LiveState::Completed);
  }
}

}  // namespace
}  // namespace berth::test::ending_tests
