// What a job is told about itself, and where its output goes.
#include <gtest/gtest.h>

#include <map>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/environment.h"
#include "model/output_pattern.h"
#include "step/grant.h"

namespace berth {
namespace {

JobSpec spec() {
  JobSpec job;
  job.command = {"train"};
  job.workdir = "/home/ann";
  job.name = "resnet";
  job.queue = "gpu";
  job.tasks = 2;
  job.memory_mib = 512;
  return job;
}

AttemptFacts facts() {
  AttemptFacts all;
  all.job = 42;
  all.attempt = {3, 17};
  all.restarts = 1;
  all.where = {.node = "n1", .devices = {1, 3}, .cores = {4, 5, 6, 7}};
  all.account = {.name = "ann", .uid = 1000, .gid = 100, .groups = {100}, .home = "/home/ann"};
  all.master_port = 20'042;
  return all;
}

std::map<std::string, std::string> env_of(const JobSpec& job, const AttemptFacts& all) {
  const auto order = make_order(job, all);
  EXPECT_TRUE(order) << order.error().text();
  return {order->env.begin(), order->env.end()};
}

TEST(Environment, NamesTheJobInBothTongues) {
  auto env = env_of(spec(), facts());
  const std::map<std::string, std::string> expected{{"CUDA_VISIBLE_DEVICES", "1,3"},
                                                    {"ROCR_VISIBLE_DEVICES", "1,3"},
                                                    {"BERTH_JOB_ID", "42"},
                                                    {"SLURM_JOB_ID", "42"},
                                                    {"SLURM_JOBID", "42"},
                                                    {"SLURM_JOB_NAME", "resnet"},
                                                    {"SLURM_NTASKS", "2"},
                                                    {"WORLD_SIZE", "2"},
                                                    {"MASTER_ADDR", "127.0.0.1"},
                                                    {"MASTER_PORT", "20042"},
                                                    {"BERTH_ATTEMPT", "3.17"},
                                                    {"SLURM_RESTART_COUNT", "1"},
                                                    {"SLURM_CPUS_PER_TASK", "2"},
                                                    {"SLURM_CPUS_ON_NODE", "4"},
                                                    {"OMP_NUM_THREADS", "2"},
                                                    {"SLURM_JOB_PARTITION", "gpu"},
                                                    {"SLURM_SUBMIT_DIR", "/home/ann"},
                                                    {"HOME", "/home/ann"},
                                                    {"USER", "ann"},
                                                    {"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                                    {"SLURM_MEM_PER_NODE", "512"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(env[name], value) << name;
  EXPECT_FALSE(env.contains("SLURM_ARRAY_JOB_ID"));
}

TEST(Environment, TheUserDecidesOnAdviceAndWeOnFacts) {
  JobSpec job = spec();
  job.env = {{"PATH", "/opt"},         {"MASTER_PORT", "1"},
             {"OMP_NUM_THREADS", "9"}, {"CUDA_VISIBLE_DEVICES", "0,1,2,3"},
             {"SLURM_JOB_ID", "1"},    {"MINE", "kept"}};
  auto env = env_of(job, facts());
  EXPECT_EQ(env["PATH"], "/opt");
  EXPECT_EQ(env["MASTER_PORT"], "1");
  EXPECT_EQ(env["OMP_NUM_THREADS"], "9");
  EXPECT_EQ(env["MINE"], "kept");
  EXPECT_EQ(env["CUDA_VISIBLE_DEVICES"], "1,3");
  EXPECT_EQ(env["SLURM_JOB_ID"], "42");
}

TEST(Environment, OnlyJobsWithTasksHaveRanks) {
  JobSpec job = spec();
  job.tasks = 1;
  auto env = env_of(job, facts());
  // Lightning and accelerate take them for the work of a launcher.
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR",
                           "MASTER_PORT", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_TASK"})
    EXPECT_FALSE(env.contains(name)) << name;
  EXPECT_FALSE(make_order(job, facts())->ranks);
  EXPECT_EQ(env["SLURM_TASKS_PER_NODE"], "1");
  job.ranks = true;
  env = env_of(job, facts());
  EXPECT_EQ(env["WORLD_SIZE"], "1");
  EXPECT_EQ(env["MASTER_PORT"], "20042");
  EXPECT_TRUE(make_order(job, facts())->ranks);
}

TEST(Environment, PassesOnWhatTheRequestSaidTheSlurmWay) {
  JobSpec job = spec();
  job.tasks = 1;
  job.qos = "long";
  job.submit_host = "login1";
  job.env = {{"SLURM_NTASKS", "4"},
             {"SLURM_MEM_PER_CPU", "128"},
             {"SLURM_CPUS_PER_TASK", "2"},
             {"SLURM_SUBMIT_DIR", "/home/ann/here"}};
  AttemptFacts all = facts();
  all.now = 1'000;
  all.time_limit = 60;
  auto env = env_of(job, all);
  const std::map<std::string, std::string> expected{{"SLURM_NTASKS", "4"},
                                                    {"SLURM_TASKS_PER_NODE", "4"},
                                                    {"SLURM_CPUS_PER_TASK", "2"},
                                                    {"SLURM_MEM_PER_CPU", "128"},
                                                    {"SLURM_SUBMIT_DIR", "/home/ann/here"},
                                                    {"SLURM_SUBMIT_HOST", "login1"},
                                                    {"SLURM_JOB_QOS", "long"},
                                                    {"SLURM_JOB_GID", "100"},
                                                    {"SLURM_TOPOLOGY_ADDR", "n1"},
                                                    {"SLURM_JOB_START_TIME", "1000"},
                                                    {"SLURM_JOB_END_TIME", "1060"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(env[name], value) << name;
  EXPECT_FALSE(env.contains("SLURM_MEM_PER_NODE"));  // it was asked for by core
}

TEST(Environment, SaysWhatSlurmWouldWhereTheRequestIsSilent) {
  JobSpec job = spec();
  job.tasks = 1;
  job.cpus = 0;
  AttemptFacts all = facts();
  all.where.cores.clear();
  all.restarts = 0;
  auto env = env_of(job, all);
  EXPECT_EQ(env["SLURM_JOB_QOS"], "normal");
  EXPECT_EQ(env["SLURM_JOB_ACCOUNT"], "ann");
  EXPECT_EQ(env["SLURM_CPUS_ON_NODE"], "1");
  EXPECT_EQ(env["BERTH_RESTARTS"], "0");
  for (const char* name : {"SLURM_RESTART_COUNT", "SLURM_GPUS", "BERTH_CPUS", "BERTH_GROUP"})
    EXPECT_FALSE(env.contains(name)) << name;
  job.group = "vision";
  job.env = {{"SLURM_GPUS", "8"}, {"SLURM_NTASKS", "4"}};  // an elastic job that has two of eight
  env = env_of(job, all);
  EXPECT_EQ(env["SLURM_JOB_ACCOUNT"], "vision");
  EXPECT_EQ(env["SLURM_GPUS"], "2");
  EXPECT_EQ(env["SLURM_CPUS_ON_NODE"], "4");
}

TEST(Environment, WhatTheJobHoldsIsPutOnRecordForItsSteps) {
  JobSpec job = spec();
  AttemptFacts all = facts();
  all.gpu_type = "a100";
  all.where.node = "n1,n2";
  const auto granted = [&] {
    const auto order = make_order(job, all);
    return order ? grant_from(order->grant).value_or(JobGrant{}) : JobGrant{};
  };
  EXPECT_EQ(granted().devices, (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(granted().nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(granted().gpu_type, "a100");
  EXPECT_EQ(granted().cpus, 4);
  EXPECT_EQ(granted().most_tasks, 0);  // it was given cores, but asked for none
  job.cpus = 3;
  EXPECT_EQ(granted().most_tasks, 3);
  job.tasks = 1;
  job.env = {{"SLURM_NTASKS", "6"}, {"SLURM_JOB_GPUS", "0,1,2,3"}};  // what its user says
  EXPECT_EQ(granted().most_tasks, 6);
  EXPECT_EQ(granted().devices, (std::vector<std::int32_t>{1, 3}));
}

TEST(Environment, AJobOfAGridHasItsParameters) {
  JobSpec job = spec();
  job.tasks = 1;
  job.grid = {"lr=0.1,0.01", "seed=1-2"};
  job.command = {"train", "--lr={lr}"};
  job.output = "{seed}.out";
  AttemptFacts all = facts();
  all.array = 40;
  all.array_index = 3;
  auto env = env_of(job, all);
  EXPECT_EQ(env["BERTH_GRID_LR"], "0.01");
  EXPECT_EQ(env["BERTH_GRID_SEED"], "2");
  EXPECT_EQ(env["SLURM_JOB_NAME"], "resnet lr=0.01 seed=2");
  const auto order = make_order(job, all);
  EXPECT_EQ(order->command, (std::vector<std::string>{"train", "--lr=0.01"}));
  EXPECT_EQ(order->output, "/home/ann/2.out");
}

TEST(Environment, TheMaskIsTheSubmitters) {
  JobSpec job = spec();
  EXPECT_EQ(make_order(job, facts())->umask, 022U);
  job.umask = "0027";
  EXPECT_EQ(make_order(job, facts())->umask, 027U);
}

TEST(Environment, AJobWithoutDevicesSeesNone) {
  AttemptFacts none = facts();
  none.where.devices.clear();
  auto env = env_of(spec(), none);
  ASSERT_TRUE(env.contains("CUDA_VISIBLE_DEVICES"));  // missing would mean all
  EXPECT_EQ(env["CUDA_VISIBLE_DEVICES"], "");
  EXPECT_FALSE(env.contains("SLURM_JOB_GPUS"));
}

TEST(Environment, ASingleTaskIsGivenNoAdviceOnThreads) {
  JobSpec job = spec();
  job.tasks = 1;
  EXPECT_FALSE(env_of(job, facts()).contains("OMP_NUM_THREADS"));
}

TEST(Environment, ArraysKnowTheirPlace) {
  JobSpec job = spec();
  job.array = ArraySpec{.indices = {0, 3, 6, 9}};
  AttemptFacts all = facts();
  all.array = 40;
  all.array_index = 6;
  auto env = env_of(job, all);
  EXPECT_EQ(env["SLURM_ARRAY_JOB_ID"], "40");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_ID"], "6");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_COUNT"], "4");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_MIN"], "0");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_MAX"], "9");
  EXPECT_EQ(env["SLURM_ARRAY_TASK_STEP"], "3");
  EXPECT_EQ(make_order(job, all)->output, "/home/ann/berth-40_6.out");
}

TEST(Environment, WhatNoProcessCanCarryIsRefused) {
  JobSpec job = spec();
  job.env = {{"A=B", "x"}};
  EXPECT_FALSE(make_order(job, facts()));
  job.env = {{"", "x"}};
  EXPECT_FALSE(make_order(job, facts()));
  job.env = {{"A", std::string("x\0y", 3)}};
  EXPECT_FALSE(make_order(job, facts()));
}

TEST(Environment, FilesAreAbsolute) {
  JobSpec job = spec();
  EXPECT_EQ(make_order(job, facts())->output, "/home/ann/berth-42.out");
  job.output = "logs/%x-%4a-%t.log";
  job.workdir = "/home/100%";
  const auto order = make_order(job, facts());
  EXPECT_EQ(path_of_task(order->output, 7), "/home/100%/logs/resnet-0000-7.log");
  EXPECT_EQ(order->error, "");
}

TEST(OutputPattern, KnowsItsLetters) {
  const PatternContext context{
      .job = 42, .array = 40, .array_index = 6, .name = "net", .user = "ann", .node = "n1"};
  const auto expand = [&](const char* pattern) {
    return expand_pattern(pattern, context).value_or("error");
  };
  EXPECT_EQ(expand("%j %x %u %A %a %N %n"), "42 net ann 40 6 n1 0");
  EXPECT_EQ(expand("%6j.%3a"), "000042.006");
  EXPECT_EQ(expand("%J %s %b"), "42 batch 6");
  EXPECT_EQ(expand_pattern("%b", {.job = 1, .array = 1, .array_index = 123}).value(), "3");
  EXPECT_EQ(expand("%t %%"), "%t %%");  // left to the shim
  EXPECT_EQ(path_of_task("%t %%t %3t", 5), "5 %t 005");
  EXPECT_EQ(expand("%q"), "error");
  EXPECT_EQ(expand("50%"), "error");
  EXPECT_EQ(expand("%99999999999999999999j"), "error");
  EXPECT_EQ(expand_pattern("%A", {.job = 42}).value(), "42");
  EXPECT_TRUE(is_per_task("a%t"));
  EXPECT_FALSE(is_per_task("a%%t"));
}

TEST(OutputPattern, ValuesChooseNoDirectoriesAndNoPatterns) {
  const PatternContext context{.job = 1, .name = "../../etc/%t", .user = "..", .node = {}};
  EXPECT_EQ(path_of_task(*expand_pattern("/logs/%x", context), 3), "/logs/.._.._etc_%t");
  EXPECT_EQ(*expand_pattern("/logs/%u/out", context), "/logs/__/out");
}

TEST(MasterPort, ComesFromTheNumberAndAvoidsWhoIsThere) {
  const auto always = [](std::uint16_t) { return true; };
  EXPECT_EQ(pick_master_port(42, always), 20'042);
  EXPECT_EQ(pick_master_port(12'042, always), 20'042);
  EXPECT_EQ(pick_master_port(11'999, [](std::uint16_t port) { return port != 31'999; }), 20'000);
  EXPECT_EQ(pick_master_port(42, [](std::uint16_t) { return false; }), 20'042);
}

TEST(MasterPort, SeesAListener) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_FALSE(is_port_free(ntohs(address.sin_port)));
  ::close(listener);
}

TEST(Account, IsFoundByName) {
  const auto root = find_account("root");
  ASSERT_TRUE(root) << root.error().text();
  EXPECT_EQ(root->uid, 0U);
  EXPECT_FALSE(root->groups.empty());
  EXPECT_EQ(find_account("no-such-user-here").error().text(),
            "user no-such-user-here is not known on this machine");
}

}  // namespace
}  // namespace berth
