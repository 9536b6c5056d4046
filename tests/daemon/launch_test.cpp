// What an attempt is started with, and where people find what it wrote.
#include "daemon/launch.h"

#include <gtest/gtest.h>

#include "daemon/status_board.h"
#include "exec/environment.h"

namespace berth::test {
namespace {

LedgerJob job_with_output(const std::string& pattern) {
  JobSpec spec;
  spec.command = {"true"};
  spec.workdir = "/home/ann";
  spec.user = "ann";
  spec.name = "train";
  spec.output = pattern;
  LedgerJob job;
  job.number = 12;
  job.spec = std::make_shared<const JobSpec>(spec);
  return job;
}

TEST(Launch, OutputIsFoundUnderTheNameOfTheNodeItRanOn) {
  LedgerJob job = job_with_output("%x-%j-%N.out");
  const std::vector<HeldDevices> where{{.node = "n1", .devices = {0}, .cores = {}}};
  PastJob past;
  past.job = job;
  past.where = where;
  job.attempt.emplace().where = where;
  EXPECT_EQ(output_paths(job).first, "/home/ann/train-12-n1.out");
  StatusBoard board{Ledger{}};
  board.set_paths([](const LedgerJob& of) { return output_paths(of); });
  EXPECT_EQ(board.past_view(past).output, "/home/ann/train-12-n1.out") << "when it is over, too";
}

TEST(Launch, ARestartDoesNotEmptyWhatEarlierAttemptsWrote) {
  const LedgerJob job = job_with_output("%j.out");
  AttemptFacts facts;
  facts.job = job.number;
  EXPECT_FALSE(make_order(*job.spec, facts)->append_output) << "of an earlier job of this name";
  facts.restarts = 1;
  EXPECT_TRUE(make_order(*job.spec, facts)->append_output);
}

TEST(Launch, TasksFollowTheDevicesOfAnElasticJob) {
  JobSpec spec;
  spec.gpus = spec.tasks = 4;
  EXPECT_EQ(tasks_on(spec, 4), 4);
  EXPECT_EQ(tasks_on(spec, 1), 4) << "it never said that it can do with less";
  spec.gpus_min = 1;
  EXPECT_EQ(tasks_on(spec, 1), 1);
  EXPECT_EQ(tasks_on(spec, 2), 2);
  spec.gpus_max = 8;
  EXPECT_EQ(tasks_on(spec, 8), 8);
  spec.tasks = 2;  // each with two devices
  EXPECT_EQ(tasks_on(spec, 2), 1);
  EXPECT_EQ(tasks_on(spec, 1), 1);
  spec.tasks = 1;
  EXPECT_EQ(tasks_on(spec, 8), 1);
}

}  // namespace
}  // namespace berth::test
