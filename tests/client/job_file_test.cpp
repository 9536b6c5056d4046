// YAML job files: one job, several, and everything that can be wrong with its place.
#include "client/job_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "project_paths.h"

namespace berth::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto jobs = parse_job_file(text, "job.yaml");
  return jobs ? std::string("fine") : jobs.error().text();
}

TEST(JobFile, HoldsOneJob) {
  const auto jobs = parse_job_file(R"(
name: train
command: [python3, train.py, --lr, 0.1]
gpus: 4
gpu_type: a100|v100
memory_mib: 16G
time_limit: 2h
grace_seconds: 90
env: {EPOCHS: 10, EMPTY: }
array: 0-3%2
requeue: no
warn_signal: USR1
)",
                                   "job.yaml");
  ASSERT_TRUE(jobs) << jobs.error().text();
  ASSERT_EQ(jobs->size(), 1U);
  const JobSpec& job = jobs->front();
  EXPECT_EQ(job.name, "train");
  EXPECT_THAT(job.command, ElementsAre("python3", "train.py", "--lr", "0.1"));
  EXPECT_EQ(job.gpus, 4);
  EXPECT_EQ(job.gpu_type, "a100|v100");
  EXPECT_EQ(job.memory_mib, 16'384);
  EXPECT_EQ(job.time_limit, 7'200);
  EXPECT_EQ(job.grace_seconds, 90);  // a bare number is what the key says
  EXPECT_EQ(job.env.at("EPOCHS"), "10");
  EXPECT_EQ(job.env.at("EMPTY"), "");
  EXPECT_EQ(job.array->at_once, 2);
  EXPECT_FALSE(job.requeue);
  EXPECT_EQ(job.warn_signal, 10);
}

TEST(JobFile, HoldsSeveralJobsWithDefaults) {
  const auto jobs = parse_job_file(R"(
defaults:
  gpus: 2
  env: {A: 1, B: 2}
jobs:
  - command: ./one
  - command: [./two]
    gpus: 1
    env: {B: 3}
)",
                                   "job.yaml");
  ASSERT_TRUE(jobs) << jobs.error().text();
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_THAT((*jobs)[0].command, ElementsAre("/bin/sh", "-c", "./one"));
  EXPECT_EQ((*jobs)[0].gpus, 2);
  EXPECT_EQ((*jobs)[1].gpus, 1);
  EXPECT_EQ((*jobs)[1].env.at("A"), "1");
  EXPECT_EQ((*jobs)[1].env.at("B"), "3");
  ASSERT_EQ(parse_job_file("- command: a\n- command: b\n", "job.yaml")->size(), 2U);
}

TEST(JobFile, TellsEverythingThatIsWrongWithItsPlace) {
  EXPECT_THAT(
      error_of("comand: x\ngpus: many\n"),
      testing::AllOf(HasSubstr("job.yaml:1:1: a job has no key 'comand' (did you mean command"),
                     HasSubstr("job.yaml:2:7: gpus: 'many' is no whole number")));
  EXPECT_THAT(error_of("command: x\ngpus: [1]\n"), HasSubstr("job.yaml:2:7: gpus is a integer"));
  EXPECT_THAT(error_of("command: x\ncommand: y\n"),
              HasSubstr("job.yaml:2:1: 'command' is given twice"));
  EXPECT_THAT(error_of("command: x\narray: 5-1\n"), HasSubstr("job.yaml:2:8: array:"));
  EXPECT_THAT(error_of("command: x\ntime_limit: soon\n"), HasSubstr("job.yaml:2:13: time_limit:"));
  EXPECT_THAT(error_of("command: x\nkind: nonsense\n"), HasSubstr("job.yaml:2:7: kind:"));
  EXPECT_THAT(error_of("env: [A]\n"), HasSubstr("job.yaml:1:6: env is a mapping"));
  EXPECT_THAT(error_of("command: {a: b}\n"), HasSubstr("job.yaml:1:10: command"));
  EXPECT_THAT(error_of("jobs: 3\n"), HasSubstr("job.yaml:1:7: jobs is a list"));
  EXPECT_THAT(error_of("jobs: []\n"), HasSubstr("no job in it"));
  EXPECT_THAT(error_of("jobs: [x]\n"), HasSubstr("job.yaml:1:8: a job is a mapping"));
  EXPECT_THAT(error_of("hello\n"), HasSubstr("job.yaml:1:1: a job file is a mapping"));
  EXPECT_THAT(error_of(""), HasSubstr("job.yaml:1:1: the file is empty"));
  EXPECT_THAT(error_of("a: [\n"), HasSubstr("job.yaml:"));
  EXPECT_THAT(error_of("jobs: []\nmatrix: {}\n"),
              HasSubstr("job.yaml:2:1: a file of several jobs has no key"));
}

TEST(JobFile, AGridIsAMappingOfNamesAndValues) {
  const std::string path = BERTH_SOURCE_DIR "/examples/jobs/sweep.yaml";
  const auto jobs = parse_job_file(read_file(path, {}).value(), path);
  ASSERT_TRUE(jobs) << jobs.error().text();
  EXPECT_EQ(jobs->front().grid, (std::vector<std::string>{"lr=0.1,0.01", "seed=1-5"}));
  EXPECT_EQ(jobs->front().array->at_once, 4);
  EXPECT_EQ(jobs->front().time_limit, 600);
}

}  // namespace
}  // namespace berth::client
