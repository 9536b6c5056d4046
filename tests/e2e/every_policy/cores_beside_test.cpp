// A job without a GPU runs beside any policy although every GPU is taken, holds none, and survives
// a kill -9 of the scheduler. In the normal suite the policies whose mechanisms differ most; all of
// the registry with BERTH_EVERY_POLICY=1.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

#include "e2e/serve/served.h"
#include "policies/registry.h"
#include "support/suite_name.h"

namespace berth::test::cores_beside_tests {
namespace {

using nlohmann::json;

std::vector<std::string> policies_to_try() {
  if (std::getenv("BERTH_EVERY_POLICY") == nullptr)
    return {"fifo", "easy", "tiresias-l", "gandiva", "muri-l", "gavel-las", "pollux", "synergy"};
  std::vector<std::string> all;
  for (const PolicyEntry& entry : policy_registry()) all.push_back(entry.name);
  return all;
}

class CoresBeside : public ::testing::TestWithParam<std::string> {};

json job(const Served& served, const std::string& name, const std::string& work, int gpus) {
  return {{"script", fmt::format("#!/bin/sh\n{}\n", work)},
          {"name", name},
          {"gpus", gpus},
          {"cpus", gpus == 0 ? 1 : 0},
          {"time_limit", 300},
          {"workdir", served.folder().path()},
          {"output", served.folder() / ("out/" + name)},
          {"grace_seconds", 5}};
}

TEST_P(CoresBeside, RunsAlthoughAllGpusAreTakenAndSurvivesAKill) {
  Served served;
  std::ofstream(served.config()) << "cluster: 1x4\nmin_run: 1s\ntraining_answer: 1s\npolicy: "
                                 << GetParam() << "\n";
  ASSERT_TRUE(served.begin());
  const std::string until = "while [ ! -e {}/go ]; do sleep 0.05; done";
  const std::string work = fmt::format(fmt::runtime(until), served.folder().path());
  const auto gpus = served.submit(job(served, "gpus", work, 4));
  ASSERT_TRUE(gpus);
  ASSERT_TRUE(eventually([&] { return served.state_of(*gpus) == "running"; }));
  const auto quick = served.submit(
      job(served, "quick", "echo \"[$CUDA_VISIBLE_DEVICES][$SLURM_JOB_GPUS][$SLURM_CPUS_ON_NODE]\"",
          0));
  const auto lasting = served.submit(job(served, "lasting", work, 0));
  ASSERT_TRUE(quick && lasting);
  EXPECT_TRUE(eventually([&] { return served.state_of(*quick) == "completed"; }))
      << served.view_of(*quick).dump();
  EXPECT_EQ(served.written_by("quick"), "[][][1]\n");
  ASSERT_TRUE(eventually([&] { return served.state_of(*lasting) == "running"; }));
  const json held = served.view_of(*lasting);
  EXPECT_EQ(held.value("granted", 0), 0) << held.dump();
  served.kill_now();
  ASSERT_TRUE(served.begin());
  EXPECT_TRUE(eventually([&] { return served.state_of(*lasting) == "running"; }));
  std::ofstream(served.folder() / "go") << "";
  for (const auto number : {*gpus, *lasting}) {
    EXPECT_TRUE(eventually([&] { return served.state_of(number) == "completed"; }))
        << served.view_of(number).dump();
    EXPECT_EQ(served.view_of(number).value("attempts", 0), 1);  // nobody stopped it
  }
}

INSTANTIATE_TEST_SUITE_P(Live, CoresBeside, ::testing::ValuesIn(policies_to_try()), kByName);

}  // namespace
}  // namespace berth::test::cores_beside_tests
