// Capacity queues: the worked example with and without preemption, every rule of the pass, limits,
// nested queues and what the parameter reader refuses.
#include <gtest/gtest.h>

#include "policies/capacity/queue_tree.h"
#include "policies/stress.h"
#include "support/run.h"

namespace berth::test {
namespace {

using namespace capacity;

Scenario with(Settings settings, std::string cluster, std::vector<JobSpec> jobs) {
  return {.policy = "capacity",
          .settings = std::move(settings),
          .cluster = std::move(cluster),
          .jobs = std::move(jobs)};
}

JobSpec job(double submit, int gpus, double duration, std::string queue, std::string user = {}) {
  return {.submit = submit,
          .gpus = gpus,
          .duration = duration,
          .user = std::move(user),
          .queue = std::move(queue)};
}

const Settings kSixFour = {{"queues", "X:0.6,Y:0.4"}};
const Settings kSixFourPreempting = {{"queues", "X:0.6,Y:0.4"}, {"preemption", "on"}};

std::vector<JobSpec> worked_example() {
  return {job(0, 4, 10, "X"), job(0, 4, 10, "X"), job(0, 2, 10, "X"), job(2, 3, 5, "Y")};
}

TEST(Capacity, LetsAQueueBorrowAndNeverTakesBackWithoutPreemption) {
  EXPECT_EQ(run(with(kSixFour, "1x10", worked_example())).finish,
            (std::vector<double>{10, 10, 10, 15}));
}

TEST(Capacity, TakesTheGuaranteeBackAndSparesWhoeverStillFits) {
  // Victims X3, X2 (same start: later submit first); X3 still fits beside Y1 and is spared.
  const Outcome outcome = run(with(kSixFourPreempting, "1x10", worked_example()));
  EXPECT_EQ(outcome.finish, (std::vector<double>{10, 15, 10, 7}));
  EXPECT_EQ(outcome.preemptions, (std::vector<int>{0, 1, 0, 0}));
}

TEST(Capacity, DoesTheSameOnDevices) {
  Scenario scenario = with(kSixFourPreempting, "1x10", worked_example());
  scenario.placement = "best-fit";
  EXPECT_EQ(run(scenario).preemptions, (std::vector<int>{0, 1, 0, 0}));
}

TEST(Capacity, PreemptsNothingIfAQueueWouldEndBelowItsGuarantee) {
  // X holds 8 of its 6 in one gang; taking it back would leave X with nothing.
  const Outcome outcome =
      run(with(kSixFourPreempting, "1x10", {job(0, 8, 10, "X"), job(2, 3, 5, "Y")}));
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 10}));
}

TEST(Capacity, PreemptsNothingForAJobBeyondItsQueuesGuarantee) {
  const Outcome outcome = run(with(kSixFourPreempting, "1x10",
                                   {job(0, 4, 10, "X"), job(0, 4, 10, "X"), job(2, 5, 5, "Y")}));
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_EQ(outcome.start[2], 10);
}

TEST(Capacity, TakesFromTheMostRecentStartFirst) {
  // X1 started at 0, X2 at 1.
  const Outcome outcome = run(with(kSixFourPreempting, "1x10",
                                   {job(0, 5, 20, "X"), job(1, 5, 20, "X"), job(2, 4, 5, "Y")}));
  EXPECT_EQ(outcome.total_preemptions, 0);  // either would leave X with 5 of 6
  const Settings even = {{"queues", "X:0.5,Y:0.5"}, {"preemption", "on"}};
  const Outcome taken =
      run(with(even, "1x10", {job(0, 5, 20, "X"), job(1, 5, 20, "X"), job(2, 4, 5, "Y")}));
  EXPECT_EQ(taken.preemptions, (std::vector<int>{0, 1, 0}));
}

TEST(Capacity, ServesTheLeastFullQueueFirst) {
  // At 10: X by name (0 = 0), Y (0 < 3/6), X by name (3/6 = 2/4) but its job does not fit any more,
  // Y.
  const Outcome outcome = run(with(kSixFour, "1x6",
                                   {job(0, 6, 10, "X"), job(1, 3, 10, "X"), job(2, 3, 10, "X"),
                                    job(3, 2, 10, "Y"), job(4, 1, 10, "Y")}));
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 10, 20, 10, 10}));
}

TEST(Capacity, BlocksAQueueBehindItsFirstJobWhenStrict) {
  const std::vector<JobSpec> jobs{job(0, 6, 10, "X"), job(1, 6, 5, "X"), job(2, 2, 5, "X"),
                                  job(3, 2, 5, "Y")};
  EXPECT_EQ(run(with(kSixFour, "1x10", jobs)).start, (std::vector<double>{0, 10, 10, 3}));
  const Settings skip = {{"queues", "X:0.6,Y:0.4"}, {"pass", "skip"}};
  EXPECT_EQ(run(with(skip, "1x10", jobs)).start, (std::vector<double>{0, 10, 2, 3}));
}

TEST(Capacity, KeepsAQueueWithinItsLargestShare) {
  const Settings limited = {{"queues", "X:0.5:0.6,Y:0.5"}};
  const Outcome outcome =
      run(with(limited, "1x10",
               {job(0, 4, 10, "X"), job(0, 2, 5, "X"), job(0, 1, 5, "X"), job(0, 7, 5, "X")}));
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 5, -1}));
  ASSERT_EQ(outcome.rejected.size(), 1U);
  EXPECT_EQ(outcome.rejected[0], "needs 7 GPUs, queue 'X' may use at most 6");
}

TEST(Capacity, WithoutQueuesIsStrictFifo) {
  const Outcome outcome = run({.policy = "capacity", .cluster = "1x4", .jobs = t6()});
  EXPECT_EQ(outcome.finish, (std::vector<double>{10, 14, 21, 33, 32, 25}));
}

TEST(Capacity, HoldsAUserBackAtTheLimitAndLetsOthersPass) {
  // A user may use 0.5 of the queue's 10: alice's second job (3 + 3 > 5) waits, bob's passes it.
  const Settings limited = {{"user_limit_factor", "0.5"}};
  const Outcome outcome = run(with(limited, "1x10",
                                   {job(0, 3, 10, "", "alice"), job(1, 3, 10, "", "alice"),
                                    job(2, 2, 10, "", "alice"), job(3, 5, 5, "", "bob")}));
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 10, 10, 3}));
}

TEST(Capacity, LetsAUserWithoutJobsStartOneAboveTheLimit) {
  const Settings limited = {{"user_limit_factor", "0.5"}};
  EXPECT_EQ(run(with(limited, "1x10", {job(0, 8, 10, "", "alice")})).start,
            (std::vector<double>{0}));
}

TEST(Capacity, DividesAParentsShareAmongItsChildren) {
  // prod has 8 of 10, half of it for each child; dev has 2. All queues are full of 1-GPU jobs.
  const Settings nested = {{"queues", "prod:0.8,prod/a:0.5,prod/b:0.5,dev:0.2"}};
  std::vector<JobSpec> jobs;
  for (const char* queue : {"dev", "prod/a", "prod/b"}) {
    for (int i = 0; i < 10; ++i) jobs.push_back(job(0, 1, 10, queue));
  }
  const Outcome outcome = run(with(nested, "1x10", jobs));
  const auto at_zero = [&](int from) {
    return std::count(outcome.start.begin() + from, outcome.start.begin() + from + 10, 0);
  };
  EXPECT_EQ(at_zero(0), 2);
  EXPECT_EQ(at_zero(10), 4);
  EXPECT_EQ(at_zero(20), 4);
}

TEST(Capacity, WaitsForFewerNodesAndThenTakesMore) {
  // 2 GPUs fit on one node, but only 1 + 1 are free until 100. Passes at 1, 2, 3 miss, at 4 it
  // takes them.
  std::vector<JobSpec> jobs{job(0, 3, 100, ""), job(0, 3, 100, ""), job(1, 2, 10, "")};
  for (int i = 2; i < 9; ++i) jobs.push_back(job(i, 8, 1, ""));
  Scenario scenario = with({{"locality_delay", "3"}}, "2x4", jobs);
  scenario.placement = "best-fit";
  EXPECT_EQ(run(scenario).start[2], 4);
  scenario.settings = {{"locality_delay", "0"}};
  EXPECT_EQ(run(scenario).start[2], 1);
}

TEST(QueueTree, SendsUnlistedNamesToTheNearestDefault) {
  auto tree = *QueueTree::make({{"prod", {0.5}}, {"prod/a", {0.25, 0.5}}});
  tree.set_capacity(100);
  EXPECT_EQ(tree.name(tree.leaf_of("prod/a")), "prod/a");
  EXPECT_EQ(tree.name(tree.leaf_of("prod/b")), "prod/default");
  EXPECT_EQ(tree.name(tree.leaf_of("prod")), "prod/default");
  EXPECT_EQ(tree.name(tree.leaf_of("who")), "default");
  EXPECT_EQ(tree.name(tree.leaf_of("")), "default");
  EXPECT_DOUBLE_EQ(tree.guaranteed_gpus(tree.leaf_of("prod/a")), 12.5);
  EXPECT_DOUBLE_EQ(tree.largest_gpus(tree.leaf_of("prod/a")), 50);
  EXPECT_DOUBLE_EQ(tree.guaranteed_gpus(tree.leaf_of("prod/b")), 37.5);
  EXPECT_DOUBLE_EQ(tree.guaranteed_gpus(tree.leaf_of("")), 50);
}

TEST(QueueTree, RefusesWhatCannotBe) {
  EXPECT_FALSE(QueueTree::make({{"a", {0.7}}, {"b", {0.4}}}));
  EXPECT_FALSE(QueueTree::make({{"a/b", {0.7}}}));
  EXPECT_FALSE(QueueTree::make({{"a", {0.7, 0.5}}}));
  EXPECT_FALSE(QueueTree::make({{"a", {0.1, 0.5, 1}}}));
  EXPECT_FALSE(QueueTree::make({{"a", {1.5}}}));
  EXPECT_TRUE(QueueTree::make({{"a", {0.333334}}, {"b", {0.333334}}, {"c", {0.333334}}}));
  EXPECT_NE(make_policy("capacity", {{"queues", "a:0.7,b:0.4"}}).error().text().find("more than 1"),
            std::string::npos);
}

TEST(Capacity, SurvivesRandomWorlds) {
  const std::string queues = "q1:0.5,q2:0.3,q2/x:0.5,q3:0.1";
  survive({.policy = "capacity"});
  survive({.policy = "capacity", .settings = {{"queues", queues}, {"preemption", "on"}}});
  survive({.policy = "capacity",
           .settings = {{"queues", queues},
                        {"preemption", "on"},
                        {"pass", "skip"},
                        {"user_limit_factor", "0.5"}}});
  survive(
      {.policy = "capacity",
       .settings = {
           {"queues", "q1:0.2:0.5,q2:0.8"}, {"user_limit_factor", "1"}, {"locality_delay", "5"}}});
}

}  // namespace
}  // namespace berth::test
