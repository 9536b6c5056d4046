// Ranks, devices and environments of a step's tasks.
#include <gtest/gtest.h>

#include "base/fd.h"
#include "step/grant.h"
#include "step/plan.h"
#include "support/temporary_directory.h"

namespace berth::test {
namespace {

Environment job_environment() {
  return {{"SLURM_JOB_ID", "12"},
          {"BERTH_STEPS", "/run/steps.1.1"},
          {"SLURMD_NODENAME", "n0"},
          {"SLURM_NTASKS", "4"},
          {"SLURM_JOB_GPUS", "0,1,2,3,4,5,6,7"},  // wrong: the record counts
          {"BERTH_CPUS", "64"},
          {"PATH", "/usr/bin"},
          {"SECRET", "s"},
          {"LR", "0.1"},
          {"CUDA_VISIBLE_DEVICES", "2,3,6,7"}};
}

std::vector<TaskPlan> planned(StepRequest request, std::vector<std::int32_t> devices) {
  auto world = world_of(job_environment());
  EXPECT_TRUE(world);
  world->grant.devices = {2, 3, 6, 7};
  StepView step;
  step.id = "3";
  step.tasks = request.tasks;
  step.devices = std::move(devices);
  if (request.programs.empty()) request.programs = {{"train"}};
  return plan_tasks(request, step, *world, job_environment());
}

std::string value(const TaskPlan& task, const std::string& name) {
  const auto found = task.environment.find(name);
  return found == task.environment.end() ? "(unset)" : found->second;
}

TEST(StepPlan, OnlyAJobOfOursHasSteps) {
  EXPECT_FALSE(world_of({{"SLURM_JOB_ID", "12"}}));
  const auto world = world_of(job_environment());
  ASSERT_TRUE(world);
  EXPECT_EQ(world->tasks, 4);
  EXPECT_TRUE(world->grant.devices.empty());  // no variable says what the job holds
  EXPECT_EQ(world->grant.cpus, 0);
}

TEST(Grant, ComesBackAsItWasPutOnRecord) {
  const TemporaryDirectory folder;
  EXPECT_FALSE(read_grant(folder.path()));  // nothing on record: nothing to give
  JobGrant grant;
  grant.devices = {2, 3};
  grant.cpus = 1'000;
  grant.most_tasks = 8;
  grant.gpu_type = "a100";
  grant.nodes = {"n0", "n1"};
  ASSERT_TRUE(put_file(std::string(folder.path()) + "/" + kGrantFile, grant_text(grant)));
  const auto read = read_grant(folder.path());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->devices, grant.devices);
  EXPECT_EQ(read->cpus, 1'000);
  EXPECT_EQ(read->most_tasks, 8);
  EXPECT_EQ(read->gpu_type, "a100");
  EXPECT_EQ(read->nodes, grant.nodes);
  EXPECT_TRUE(read->cores.empty());  // we are bound to none of so many
}

TEST(Grant, NonsenseIsNoRecord) {
  const std::string good = grant_text({.devices = {1}, .cores = {}, .cpus = 2});
  ASSERT_TRUE(grant_from(good));
  for (const char* text :
       {"", "[]", "{}", "{\"devices\":[1]}",
        "{\"devices\":[-1],\"nodes\":[],\"cpus\":0,\"most_tasks\":0,"
        "\"gpu_type\":\"\"}",
        "{\"devices\":[\"1\"],\"nodes\":[],\"cpus\":0,\"most_tasks\":0,"
        "\"gpu_type\":\"\"}",
        "{\"devices\":[],\"nodes\":[3],\"cpus\":0,\"most_tasks\":0,"
        "\"gpu_type\":\"\"}",
        "{\"devices\":[],\"nodes\":[],\"cpus\":99999999999,\"most_tasks\":0,"
        "\"gpu_type\":\"\"}",
        "{\"devices\":[],\"nodes\":[],\"cpus\":0,\"most_tasks\":0,\"gpu_type\":1}"})
    EXPECT_FALSE(grant_from(text)) << text;
  for (std::size_t size = 0; size + 2 < good.size(); ++size)
    EXPECT_FALSE(grant_from(std::string_view(good).substr(0, size))) << size;
}

TEST(StepPlan, EachTaskKnowsItsRankAndStep) {
  StepRequest request;
  request.tasks = 2;
  const auto tasks = planned(request, {2, 3});
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(value(tasks[1], "SLURM_PROCID"), "1");
  EXPECT_EQ(value(tasks[1], "SLURM_LOCALID"), "1");
  EXPECT_EQ(value(tasks[1], "SLURM_NTASKS"), "2");
  EXPECT_EQ(value(tasks[1], "SLURM_STEP_ID"), "3");
  EXPECT_EQ(value(tasks[1], "SLURM_GTIDS"), "0,1");
  EXPECT_EQ(value(tasks[1], "CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(value(tasks[1], "SLURM_JOB_GPUS"), "2,3,6,7");  // what the job holds stays known
  EXPECT_EQ(value(tasks[1], "LR"), "0.1");
  EXPECT_EQ(value(tasks[1], "RANK"), "(unset)");
}

TEST(StepPlan, DevicesAreBoundAsAsked) {
  const auto devices = [](GpuBinding binding, std::int32_t count,
                          std::vector<std::int32_t> map = {}) {
    StepRequest request;
    request.tasks = 4;
    request.binding = binding;
    request.binding_count = count;
    request.binding_map = std::move(map);
    std::string all;
    for (const TaskPlan& task : planned(request, {2, 3, 6, 7}))
      all += value(task, "CUDA_VISIBLE_DEVICES") + " ";
    return all;
  };
  EXPECT_EQ(devices(GpuBinding::PerTask, 1), "2 3 6 7 ");
  EXPECT_EQ(devices(GpuBinding::PerTask, 2), "2,3 6,7   ");
  EXPECT_EQ(devices(GpuBinding::Single, 1), "2 3 6 7 ");
  EXPECT_EQ(devices(GpuBinding::Single, 2), "2 2 3 3 ");
  EXPECT_EQ(devices(GpuBinding::Map, 1, {3, 0}), "7 2 7 2 ");
  EXPECT_EQ(devices(GpuBinding::Map, 1, {9}), "    ");  // none is never another's
}

TEST(StepPlan, ExportsWhatIsAsked) {
  StepRequest request;
  request.exported = "NONE";
  EXPECT_EQ(value(planned(request, {}).front(), "LR"), "(unset)");
  EXPECT_EQ(value(planned(request, {}).front(), "PATH"), "/usr/bin");
  EXPECT_EQ(value(planned(request, {}).front(), "CUDA_VISIBLE_DEVICES"), "");
  request.exported = "LR,NEW=a=b";
  EXPECT_EQ(value(planned(request, {}).front(), "LR"), "0.1");
  EXPECT_EQ(value(planned(request, {}).front(), "NEW"), "a=b");
  EXPECT_EQ(value(planned(request, {}).front(), "SECRET"), "(unset)");
  request.exported = "ALL,LR=0.2";
  EXPECT_EQ(value(planned(request, {}).front(), "SECRET"), "s");
  EXPECT_EQ(value(planned(request, {}).front(), "LR"), "0.2");
}

TEST(StepPlan, SeveralProgramsInOneStep) {
  const auto programs =
      parse_multi_prog("# ranks\n0 server --port %t\n1-2,3 'a b' \"%o of\" %t\n", 4);
  ASSERT_TRUE(programs) << programs.error().text();
  EXPECT_EQ((*programs)[0], (std::vector<std::string>{"server", "--port", "0"}));
  EXPECT_EQ((*programs)[3], (std::vector<std::string>{"a b", "2 of", "3"}));
  EXPECT_TRUE(parse_multi_prog("* worker\n", 3));
  EXPECT_FALSE(parse_multi_prog("0 a\n0 b\n", 1));   // twice
  EXPECT_FALSE(parse_multi_prog("0 a\n", 2));        // rank 1 is missing
  EXPECT_FALSE(parse_multi_prog("0-99999 a\n", 2));  // absurd
  EXPECT_FALSE(parse_multi_prog("x a\n", 1));
  EXPECT_FALSE(parse_multi_prog("0\n", 1));
}

}  // namespace
}  // namespace berth::test
