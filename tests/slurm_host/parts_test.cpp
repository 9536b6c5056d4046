// Who a job of Slurm is, what it asks for, and which nodes take jobs.
#include <gtest/gtest.h>

#include "slurm_host/claim.h"
#include "slurm_host/node_watch.h"
#include "slurm_host/slurm_book.h"
#include "slurm_host/slurm_cluster.h"
#include "slurm_host/slurm_job_spec.h"

namespace berth {
namespace {

slurm::Job job_of(std::uint32_t id, std::uint32_t restarts, std::int64_t submitted) {
  slurm::Job job;
  job.key = {.job = id, .restarts = restarts, .submitted = submitted};
  job.user = "ann";
  job.phase = slurm::JobPhase::Pending;
  return job;
}

BookedJob booked(JobNumber number, std::uint32_t id, std::int64_t submitted) {
  return {.number = number,
          .first = {{.job = id}, submitted, 0},
          .user = "ann",
          .runs = {{0U, submitted}}};
}

TEST(SlurmClaim, IsReadAsItWasWritten) {
  const Claim claim{.attempt = {3, 17},
                    .name = {.job = 7, .task = 2},
                    .user = "ann",
                    .restarts = 1,
                    .submitted = 1'700'000'000,
                    .nodes = {"n1", "n2"}};
  const SettingRecord setting = to_setting(12, claim);
  const auto read = claim_from(setting.key, setting.value);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->first, 12U);
  EXPECT_EQ(read->second, claim);
  EXPECT_FALSE(claim_from("slurm/claim/x", setting.value));
  EXPECT_FALSE(claim_from(setting.key, "{}"));
  EXPECT_FALSE(claim_from("policy", setting.value));
}

TEST(SlurmClaim, KeysNameTheFirstSight) {
  const FirstSight seen{{.job = 7, .task = 2}, 1'700'000'000, 1};
  EXPECT_EQ(key_of(seen), "slurm/7_2/1/1700000000");
  EXPECT_EQ(first_sight_from(key_of(seen)), seen);
  for (const char* wrong : {"", "slurm/7", "slurm/x/0/1", "berth/7/0/1", "slurm/7_/0/1"})
    EXPECT_FALSE(first_sight_from(wrong)) << wrong;
}

TEST(SlurmBook, FollowsAJobOverRequeues) {
  SlurmBook book;
  book.add(booked(1, 7, 100));
  const std::vector jobs{job_of(7, 2, 300)};
  EXPECT_TRUE(book.read(jobs).empty());
  EXPECT_EQ(book.find(1)->now, &jobs[0]);
}

// Because a killed slurmctld forgets a submit and gives its id to the next job.
TEST(SlurmBook, AnIdThatWasHandedOutAgainIsAnotherJob) {
  SlurmBook book;
  book.add(booked(1, 7, 100));
  const std::vector jobs{job_of(7, 0, 130)};
  const auto unknown = book.read(jobs);
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_TRUE(book.find(1)->is_gone());
  book.add(booked(2, 7, 130));
  EXPECT_TRUE(book.read(jobs).empty());
  EXPECT_EQ(book.find(2)->now, &jobs[0]);
  EXPECT_EQ(book.find(1)->now, nullptr);
}

TEST(SlurmBook, ARunThatWasForgottenIsTheSameJob) {
  SlurmBook book;
  book.add(booked(1, 7, 100));
  EXPECT_TRUE(book.read({job_of(7, 2, 300)}).empty());
  EXPECT_TRUE(book.read({job_of(7, 0, 100)}).empty());  // seen before
  EXPECT_TRUE(book.read({job_of(7, 1, 200)}).empty());  // between two that were
  EXPECT_EQ(book.read({job_of(7, 1, 400)}).size(), 1U);
}

// Because Slurm sets the submit time of a requeued job before its count: seen on 24.11.
TEST(SlurmBook, AJobThatIsBeingRequeuedIsTheSameJob) {
  SlurmBook book;
  book.add(booked(1, 7, 100));
  slurm::Job leaving = job_of(7, 0, 130);
  leaving.completing = true;
  EXPECT_TRUE(book.read({leaving}).empty());
  EXPECT_TRUE(book.read({job_of(7, 1, 130)}).empty());
}

TEST(SlurmBook, OneReadingWithoutAJobMayBeAMistake) {
  SlurmBook book;
  book.add(booked(1, 7, 100));
  EXPECT_TRUE(book.read({}).empty());
  EXPECT_FALSE(book.find(1)->is_gone());
  EXPECT_TRUE(book.read({}).empty());
  EXPECT_TRUE(book.find(1)->is_gone());
}

TEST(SlurmBook, EveryTaskOfAnArrayIsAJob) {
  SlurmBook book;
  slurm::Job array = job_of(7, 0, 100);
  array.array = 7;
  array.array_tasks = "0-2%2";
  const auto unknown = book.read({array});
  ASSERT_EQ(unknown.size(), 3U);
  EXPECT_EQ(to_text(unknown[2].name), "7_2");
  EXPECT_EQ(tasks_at_once(array), 2);
}

Cluster two_types() {
  std::vector<slurm::Node> nodes;
  for (int i = 0; i < 4; ++i) {
    slurm::Node node{.name = "n" + std::to_string(i)};
    node.cpus = 16;
    node.gres = {{.name = "gpu", .type = i < 2 ? "v100" : "a100", .count = i < 2 ? 4 : 8}};
    nodes.push_back(node);
  }
  slurm::Node bare{.name = "login"};
  nodes.push_back(bare);
  const std::vector<slurm::Switch> switches{
      {.name = "s0", .level = 0, .nodes = {"n0", "n1"}, .switches = {}},
      {.name = "s1", .level = 0, .nodes = {"n2", "n3"}, .switches = {}},
      {.name = "top", .level = 1, .nodes = {"n0", "n1", "n2", "n3"}, .switches = {"s0", "s1"}}};
  return *cluster_from(nodes, switches, "slurm");
}

TEST(SlurmCluster, HasTypesAndRacksOfItsNodes) {
  const Cluster cluster = two_types();
  ASSERT_EQ(cluster.nodes.size(), 4U);  // none without GPUs
  EXPECT_EQ(cluster.total_gpus(), 24);
  EXPECT_EQ(cluster.pools.size(), 2U);
  EXPECT_EQ(cluster.racks, (std::vector<std::string>{"s0", "s1"}));
  EXPECT_EQ(cluster.nodes[3].rack, RackId{1});
  EXPECT_FALSE(cluster_from({}, {}, "slurm"));
}

TEST(SlurmJobSpec, CountsGpusAsTheyWereAskedFor) {
  slurm::Job job = job_of(7, 0, 100);
  job.min_nodes = 2;
  job.per_node = {{.name = "gpu", .type = "a100", .count = 8}};
  job.account = "ml";
  job.time_limit = 3600;
  const JobSpec spec = spec_of(job, {{.job = 7}, 100, 0}, two_types());
  EXPECT_EQ(spec.gpus, 16);
  EXPECT_EQ(spec.gpu_type, "a100");
  EXPECT_EQ(spec.group, "ml");
  EXPECT_EQ(spec.time_limit, 3600);
  EXPECT_EQ(obstacle_of(job, two_types(), {}), "");  // whole nodes
  job.per_node[0].count = 4;
  EXPECT_NE(obstacle_of(job, two_types(), {}), "");
}

// Because two nodes of four GPUs are not what a job means that asks for eight on one.
TEST(SlurmJobSpec, TypesThatAreTooSmallAreNotForIt) {
  slurm::Job job = job_of(7, 0, 100);
  job.per_node = {{.name = "gpu", .type = {}, .count = 8}};
  EXPECT_EQ(spec_of(job, {{.job = 7}, 100, 0}, two_types()).gpu_type, "a100");
  job.per_node[0].count = 4;
  EXPECT_EQ(spec_of(job, {{.job = 7}, 100, 0}, two_types()).gpu_type, "");
}

TEST(SlurmJobSpec, WhatAPolicyCannotTakeIntoAccountIsNotForUs) {
  const auto obstacle = [](auto change) {
    slurm::Job job = job_of(7, 0, 100);
    job.per_node = {{.name = "gpu", .type = {}, .count = 1}};
    change(job);
    return obstacle_of(job, two_types(), {"n0", "n1", "n2", "n3"});
  };
  EXPECT_EQ(obstacle([](slurm::Job&) {}), "");
  EXPECT_NE(obstacle([](slurm::Job& job) { job.required_nodes = {"n1"}; }), "");
  EXPECT_NE(obstacle([](slurm::Job& job) { job.excluded_nodes = {"n1"}; }), "");
  EXPECT_NE(obstacle([](slurm::Job& job) { job.features = "nvlink"; }), "");
  EXPECT_NE(obstacle([](slurm::Job& job) { job.exclusive = true; }), "");
  EXPECT_NE(obstacle([](slurm::Job& job) { job.per_node[0].name = "shard"; }), "");
  slurm::Job job = job_of(7, 0, 100);
  EXPECT_NE(obstacle_of(job, two_types(), {"n0"}), "");  // a partition of some nodes
}

TEST(NodeWatch, LeavesAloneWhatAPersonHasSet) {
  const Cluster cluster = two_types();
  std::vector<slurm::Node> nodes;
  for (const Node& node : cluster.nodes) {
    slurm::Node one{.name = node.name};
    one.state = node.name == "n0" ? "DOWN" : "IDLE";
    nodes.push_back(one);
  }
  nodes.pop_back();  // n3 is none of Slurm's any more
  std::map<std::string, std::string> set{{"node/n1", "drained: by ann"},
                                         {"node/n2", "drained: by Slurm: DOWN"}};
  const auto setting = [&](const std::string& key) -> std::optional<std::string> {
    const auto found = set.find(key);
    return found == set.end() ? std::nullopt : std::optional{found->second};
  };
  const auto records = node_settings(cluster, nodes, {{"n1", {"12"}}}, setting);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].key, "node/n0");
  EXPECT_TRUE(records[0].value.starts_with("drained: ")) << records[0].value;
  EXPECT_EQ(records[1].key, "node/n2");
  EXPECT_EQ(records[1].value, "");  // it is back
  EXPECT_EQ(records[2].key, "node/n3");
}

}  // namespace
}  // namespace berth
