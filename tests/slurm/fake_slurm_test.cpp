// The Slurm of other tests has the habits of the real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_slurm.h"

namespace berth::test {
namespace {

using slurm::JobPhase;
using slurm::Refusal;
using testing::ElementsAre;

slurm::Job asks(std::int64_t gpus) {
  slurm::Job job;
  job.per_node = {{"gpu", "", gpus, {}}};
  return job;
}

TEST(FakeSlurm, AHeldJobWaitsUntilItIsPlaced) {
  FakeSlurm cluster;
  cluster.add_nodes(2, "v100", 4);
  const auto job = cluster.submit(asks(2));
  cluster.advance(100);
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Pending);
  ASSERT_TRUE(cluster.place("1", {.nodes = {"n2"}}));
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Pending);
  cluster.advance(1);
  ASSERT_EQ(cluster.find(job)->phase, JobPhase::Running);
  EXPECT_EQ(cluster.find(job)->held.at(0).node, "n2");
  EXPECT_THAT(cluster.find(job)->held.at(0).gres.at(0).indices, ElementsAre(0, 1));
  EXPECT_EQ(cluster.place("1", {.nodes = {"n1"}}).error().refusal, Refusal::WrongState);
  cluster.end_after(job, 10);
  cluster.advance(10);
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Completed);
  cluster.advance(400);
  EXPECT_EQ(cluster.find(job), nullptr);
  EXPECT_EQ(cluster.hold("1").error().refusal, Refusal::NoSuchJob);
}

TEST(FakeSlurm, NoDeviceIsGivenTwice) {
  FakeSlurm cluster;
  cluster.add_nodes(1, "v100", 4);
  const auto first = cluster.submit(asks(3));
  const auto second = cluster.submit(asks(2));
  ASSERT_TRUE(cluster.place("1", {.nodes = {"n1"}}));
  ASSERT_TRUE(cluster.place("2", {.nodes = {"n1"}}));
  cluster.advance(5);
  EXPECT_EQ(cluster.find(second)->phase, JobPhase::Pending);
  EXPECT_EQ(cluster.find(second)->reason, "Resources");
  ASSERT_TRUE(cluster.suspend("1"));
  cluster.advance(5);
  EXPECT_EQ(cluster.find(second)->phase, JobPhase::Pending);  // a suspended job keeps its GPUs
  ASSERT_TRUE(cluster.cancel("1"));
  cluster.advance(1);
  EXPECT_EQ(cluster.find(first)->phase, JobPhase::Cancelled);
  EXPECT_EQ(cluster.find(second)->phase, JobPhase::Running);
}

TEST(FakeSlurm, ARequeuedJobIsAnotherRunThatWaitsHeld) {
  FakeSlurm cluster;
  cluster.add_nodes(2, "v100", 4);
  const auto job = cluster.submit(asks(4));
  ASSERT_TRUE(cluster.place("1", {.nodes = {"n1"}}));
  cluster.advance(3);
  const auto before = cluster.find(job)->key;
  ASSERT_TRUE(cluster.requeue_held("1"));
  EXPECT_TRUE(cluster.find(job)->completing);
  cluster.advance(1);
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Pending);
  EXPECT_EQ(cluster.find(job)->priority, 0U);
  EXPECT_EQ(cluster.find(job)->key.restarts, before.restarts + 1);
  EXPECT_GT(cluster.find(job)->key.submitted, before.submitted);
  ASSERT_TRUE(cluster.place("1", {.nodes = {"n1"}}));
  cluster.advance(2);
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Pending);  // its begin time has not come
  ASSERT_TRUE(cluster.place("1", {.nodes = {"n2"}, .begin_now = true}));
  cluster.advance(1);
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Running);
}

TEST(FakeSlurm, ALostNodeGivesItsJobsBackUnheld) {
  FakeSlurm cluster;
  cluster.add_nodes(2, "v100", 4);
  const auto job = cluster.submit(asks(4));
  ASSERT_TRUE(cluster.place("1", {.nodes = {"n1"}}));
  cluster.advance(1);
  cluster.lose_node("n1");
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Pending);
  EXPECT_GT(cluster.find(job)->priority, 0U);
  EXPECT_THAT(cluster.find(job)->required_nodes, ElementsAre("n1"));
  cluster.advance(20);
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Pending);  // its node is not there
  cluster.return_node("n1");
  cluster.advance(1);
  EXPECT_EQ(cluster.find(job)->phase, JobPhase::Running);
}

TEST(FakeSlurm, AKilledControllerForgetsAndGivesIdsAgain) {
  FakeSlurm cluster;
  cluster.add_nodes(1, "v100", 4);
  cluster.submit(asks(1));
  cluster.keep();
  cluster.advance(5);
  const auto lost = cluster.submit(asks(2));
  cluster.forget();
  EXPECT_EQ(cluster.find(lost), nullptr);
  EXPECT_EQ(cluster.submit(asks(3)), lost);
  cluster.is_reachable = false;
  EXPECT_EQ(cluster.jobs().error().refusal, Refusal::Unreachable);
  cluster.is_reachable = true;
  cluster.lost_answers = 1;
  EXPECT_EQ(cluster.place("1", {.nodes = {"n1"}}).error().refusal, Refusal::Unreachable);
  EXPECT_GT(cluster.find(1)->priority, 0U);  // done all the same
}

TEST(FakeSlurm, OneTaskOfAnArrayIsSplitOff) {
  FakeSlurm cluster;
  cluster.add_nodes(1, "v100", 4);
  slurm::Job array = asks(1);
  array.array_tasks = "1-4%2";
  cluster.submit(array);
  ASSERT_TRUE(cluster.place("1_2", {.nodes = {"n1"}}));
  cluster.advance(1);
  ASSERT_NE(cluster.find(2), nullptr);
  EXPECT_EQ(cluster.find(2)->array, 1U);
  EXPECT_EQ(cluster.find(2)->array_tasks, "2");
  EXPECT_EQ(cluster.find(2)->phase, JobPhase::Running);
  EXPECT_EQ(cluster.find(1)->array_tasks, "1,3,4");
  EXPECT_EQ(cluster.find(1)->phase, JobPhase::Pending);
}

}  // namespace
}  // namespace berth::test
