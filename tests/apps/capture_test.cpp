// The parts of `berth slurm capture`: nodes as a cluster file, sacct's rows as a trace, what waits.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/pseudonyms.h"
#include "apps/slurm_cluster.h"
#include "apps/slurm_history.h"
#include "model/cluster.h"

namespace berth {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Naming kAsIs = [](std::string_view, std::string_view name) { return std::string(name); };

slurm::Node node(const std::string& name, const std::string& type, std::int64_t gpus) {
  slurm::Node made;
  made.name = name;
  made.state = "IDLE";
  made.cpus = 32;
  made.sockets = 2;
  made.memory_mib = 256'000;
  if (gpus > 0) made.gres = {{.name = "gpu", .type = type, .count = gpus}};
  return made;
}

SlurmCluster cluster_of(const std::vector<slurm::Node>& nodes,
                        const std::vector<slurm::Switch>& switches = {}) {
  auto made = slurm_cluster("lab", nodes, switches, kAsIs);
  EXPECT_TRUE(made) << (made ? "" : made.error().text());
  return made ? std::move(*made) : SlurmCluster{};
}

Cluster read_back(const SlurmCluster& cluster) {
  auto read = parse_cluster_yaml(cluster.yaml, "cluster.yaml");
  EXPECT_TRUE(read) << (read ? "" : read.error().text()) << cluster.yaml;
  return read ? std::move(*read) : Cluster{};
}

TEST(SlurmCluster, LikeNodesAreOneGroupAndSwitchesAreRacks) {
  std::vector<slurm::Switch> switches(3);
  switches[0] = {.name = "s1", .level = 0, .nodes = {"n1", "n2"}};
  switches[1] = {.name = "s2", .level = 0, .nodes = {"n3", "n4"}};
  switches[2] = {.name = "core", .level = 1, .nodes = {}, .switches = {"s1", "s2"}};
  const SlurmCluster made = cluster_of(
      {node("n1", "v100", 4), node("n2", "v100", 4), node("n3", "a100", 8), node("n4", "a100", 8)},
      switches);
  EXPECT_EQ(made.yaml,
            "name: \"lab\"\n"
            "groups:\n"
            "  - nodes: \"n[1-2]\"\n    gpus: 4\n    type: v100\n    cpus: 32\n    memory_gb: 250\n"
            "    sockets: 2\n    rack: \"s1\"\n"
            "  - nodes: \"n[3-4]\"\n    gpus: 8\n    type: a100\n    cpus: 32\n    memory_gb: 250\n"
            "    sockets: 2\n    rack: \"s2\"\n");
  const Cluster cluster = read_back(made);
  EXPECT_EQ(cluster.total_gpus(), 24);
  EXPECT_THAT(cluster.racks, ElementsAre("s1", "s2"));
  EXPECT_EQ(cluster.nodes[3].name, "n4");
  EXPECT_EQ(cluster.nodes[3].memory_mib, 256'000);
}

TEST(SlurmCluster, WhatAFileCannotSayIsTold) {
  slurm::Node mixed = node("x7", "a100", 4);
  mixed.gres.push_back({.name = "gpu", .type = "v100", .count = 2});
  slurm::Node down = node("n2", "", 2);
  down.state = "DOWN+DRAIN";
  const SlurmCluster made = cluster_of({node("cpu[1]", "", 0), mixed, down, node("n1", "", 2)});
  EXPECT_EQ(read_back(made).total_gpus(), 8);
  EXPECT_THAT(made.notes, Contains(HasSubstr("have no GPU")));
  EXPECT_THAT(made.notes, Contains(HasSubstr("1 nodes (x7) have GPUs of several types")));
  EXPECT_THAT(made.notes, Contains(HasSubstr("1 nodes (n2) were down")));
  EXPECT_THAT(made.notes, Contains(HasSubstr("knows no topology")));
}

TEST(SlurmCluster, TypesThatNobodyKnowsGetARowAndFeaturesSayTheirMemory) {
  slurm::Node known = node("n1", "a100", 4);
  known.features = {"ib", "GPU_MEM:80GB"};
  slurm::Node named = node("n2", "rtx_pro", 4);
  named.features = {"gpumem96"};
  const SlurmCluster made = cluster_of({known, named, node("n3", "odd:type", 1)});
  const Cluster cluster = read_back(made);
  ASSERT_EQ(cluster.pools.size(), 3U);
  EXPECT_EQ(cluster.pools[0].memory_mib, 80 * 1024);
  EXPECT_EQ(cluster.pools[1].name, "rtx_pro");
  EXPECT_EQ(cluster.pools[1].memory_mib, 96 * 1024);
  EXPECT_EQ(cluster.pools[2].name, "odd_type");
  EXPECT_THAT(made.yaml, HasSubstr("odd_type, memory_gb: 16}  # memory is not known"));
}

TEST(SlurmCluster, WithoutAGpuThereIsNothingToDo) {
  const auto made = slurm_cluster("lab", std::vector{node("n1", "", 0)}, {}, kAsIs);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text(), HasSubstr("no node of this Slurm has a GPU"));
}

/// A row of sacct as we ask for it; the mark stands behind every field.
std::string row(const std::string& id, const std::string& state, const std::string& times,
                const std::string& tres, const std::string& nodes, const std::string& name,
                const std::string& constraint = "") {
  std::string text;
  std::string rest = fmt::format("{}|ann|lab|main|{}|{}|30|{}|{}|{}|1|{}", id, state, times, tres,
                                 tres, nodes, constraint);
  for (char& c : rest) {
    if (c == '|')
      text += "<M>";
    else
      text += c;
  }
  return text + "<M>" + name + "<M>1<M>\n";
}

TEST(SlurmHistory, WhateverANameHoldsARowIsARow) {
  const SlurmCluster cluster = cluster_of({node("n1", "v100", 4)});
  const auto history = history_of_sacct(
      row("1", "COMPLETED", "1000|1010|1020|10", "cpu=1,gres/gpu=2", "n1", "a|b\n9|x|y\n") +
          row("2", "FAILED", "1001|1010|1015|5", "cpu=3", "n1", "\n\n"),
      "<M>", cluster);
  ASSERT_TRUE(history) << history.error().text();
  ASSERT_EQ(history->trace.jobs.size(), 2U);
  EXPECT_EQ(history->trace.text(history->trace.jobs[0].name), "a b 9 x y");
  EXPECT_EQ(history->trace.jobs[0].gpus, 2);
  EXPECT_EQ(history->trace.jobs[1].gpu_milli, 0);
  EXPECT_EQ(history->trace.jobs[1].cpus_milli, 3000);
  EXPECT_FALSE(history_of_sacct("1<M>ann<M>half", "<M>", cluster));
}

TEST(SlurmHistory, RunsOnOtherNodesAreLeftOut) {
  const SlurmCluster cluster = cluster_of({node("n1", "v100", 4), node("n2", "v100", 4)});
  const auto history = history_of_sacct(
      row("1", "COMPLETED", "1000|1010|1020|10", "cpu=1,gres/gpu=2", "n[1-2]", "a") +
          row("2", "COMPLETED", "1001|1010|1020|10", "cpu=1", "cpu[1-9]", "b") +
          row("3", "PENDING", "1002|Unknown|Unknown|0", "cpu=1", "None assigned", "c"),
      "<M>", cluster);
  ASSERT_TRUE(history);
  EXPECT_EQ(history->trace.jobs.size(), 1U);
  EXPECT_THAT(history->notes, Contains(HasSubstr("1 runs on nodes that are not in cluster.yaml")));
}

// 4 shards make a GPU here, so 2 of them are half of one.
TEST(SlurmHistory, ShardsAndConstraintsAreWhatTheyMeanOnThisCluster) {
  slurm::Node shared = node("n1", "v100", 4);
  shared.gres.push_back({.name = "shard", .type = "v100", .count = 16});
  const SlurmCluster cluster = cluster_of({shared, node("n2", "a100", 8)});
  const auto history = history_of_sacct(
      row("1", "COMPLETED", "1000|1010|1020|10", "cpu=1,gres/shard=2", "n1", "a") +
          row("2", "COMPLETED", "1001|1010|1020|10", "cpu=1,gres/gpu=1", "n1", "b", "[a100,v100]") +
          row("3", "COMPLETED", "1002|1010|1020|10", "cpu=1,gres/gpu=1", "n1", "b", "v100"),
      "<M>", cluster);
  ASSERT_TRUE(history);
  ASSERT_EQ(history->trace.jobs.size(), 3U);
  EXPECT_EQ(history->trace.jobs[0].gpu_milli, 500);
  EXPECT_EQ(history->trace.text(history->trace.jobs[1].gpu_type), "");  // not a choice of types
  EXPECT_EQ(history->trace.text(history->trace.jobs[2].gpu_type), "v100");
}

TEST(SlurmHistory, OnlyWhatWasSubmittedInTheWindowStays) {
  const SlurmCluster cluster = cluster_of({node("n1", "v100", 4)});
  auto history = history_of_sacct(
      row("1", "COMPLETED", "1700000000|1700000000|1700000020|20", "gres/gpu=2", "n1", "a") +
          row("2", "COMPLETED", "1700000100|1700000110|1700000120|10", "gres/gpu=2", "n1", "b"),
      "<M>", cluster);
  ASSERT_TRUE(history);
  keep_since(*history, 1'700'000'050);
  ASSERT_EQ(history->trace.jobs.size(), 1U);
  EXPECT_EQ(history->trace.text(history->trace.jobs[0].id), "2");
  EXPECT_THAT(history->notes, Contains(HasSubstr("1 jobs were submitted before the first day")));
}

slurm::Job pending(std::uint32_t id, const std::string& partition, std::int64_t limit) {
  slurm::Job job;
  job.key = {.job = id, .restarts = 0, .submitted = 1'700'000'000 + id};
  job.user = "ann";
  job.partition = partition;
  job.phase = slurm::JobPhase::Pending;
  job.priority = 5;
  job.time_limit = limit;
  job.cpus = 4;
  job.per_node = {{.name = "gpu", .type = "", .count = 2}};
  return job;
}

TEST(SlurmHistory, WhatWaitsRunsAsLongAsItMay) {
  const SlurmCluster cluster = cluster_of({node("n1", "v100", 4)});
  std::vector<slurm::Partition> partitions(3);
  partitions[0] = {.name = "gpu", .nodes = {"n1"}};
  partitions[1] = {.name = "cpu", .nodes = {"c1"}};
  partitions[2] = {.name = "short", .nodes = {"n1"}, .max_time = 600};
  slurm::Job array = pending(7, "gpu,cpu", 120);
  array.array = 7;
  array.array_tasks = "2-4%1";
  array.priority = 0;
  slurm::Job runs = pending(9, "gpu", 60);
  runs.phase = slurm::JobPhase::Running;
  const auto waiting =
      waiting_jobs(std::vector{pending(5, "gpu", 60), pending(6, "cpu", 60), array,
                               pending(8, "short", 0), pending(10, "gpu", 0), runs},
                   partitions, cluster);
  std::vector<std::string> jobs;
  for (const TraceJob& job : waiting.trace.jobs)
    jobs.push_back(
        fmt::format("{} {} {}", waiting.trace.text(job.id), job.gpus, to_seconds(job.duration)));
  EXPECT_THAT(jobs, ElementsAre("5 2 60", "7_2 2 120", "7_3 2 120", "7_4 2 120", "8 2 600"));
  EXPECT_THAT(waiting.notes, Contains(HasSubstr("1 waiting jobs are for partitions without")));
  EXPECT_THAT(waiting.notes, Contains(HasSubstr("1 waiting jobs have no time limit")));
  EXPECT_THAT(waiting.notes, Contains(HasSubstr("1 waiting jobs are held")));
}

TEST(Pseudonyms, AreTheSameForTheSameNameAndKey) {
  Pseudonyms mine("0123");
  Pseudonyms again("0123");
  Pseudonyms others("4567");
  EXPECT_EQ(mine.of("user", "ann"), again.of("user", "ann"));
  EXPECT_THAT(mine.of("user", "ann"), testing::MatchesRegex("user-[0-9a-f]{8}"));
  EXPECT_NE(mine.of("user", "ann"), mine.of("user", "bob"));
  EXPECT_NE(mine.of("user", "ann").substr(5), mine.of("group", "ann").substr(6));
  EXPECT_NE(mine.of("user", "ann"), others.of("user", "ann"));
  EXPECT_EQ(mine.of("node", "gpu07"), "n1");
  EXPECT_EQ(mine.of("node", "gpu09"), "n2");
  EXPECT_EQ(mine.of("node", "gpu07"), "n1");
}

TEST(Pseudonyms, NothingOfATraceKeepsItsName) {
  Trace trace;
  TraceJob job;
  job.user = trace.names.intern("ann");
  job.group = trace.names.intern("lab");
  job.name = trace.names.intern("secret");
  trace.jobs.push_back(job);
  Pseudonyms pseudonyms("k");
  rename(trace,
         [&](std::string_view kind, std::string_view name) { return pseudonyms.of(kind, name); });
  EXPECT_THAT(trace.text(trace.jobs[0].user), HasSubstr("user-"));
  EXPECT_THAT(trace.text(trace.jobs[0].group), HasSubstr("group-"));
  EXPECT_THAT(trace.text(trace.jobs[0].name), HasSubstr("name-"));
  EXPECT_EQ(trace.text(trace.jobs[0].queue), "");
}

}  // namespace
}  // namespace berth
