// The C++ trainer of examples/, as a job of a real hub.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "e2e/training/program.h"

namespace berth::test {
namespace {

/// About four seconds if nothing disturbs it: 4 x 128 steps of 8 ms.
std::vector<std::string> trainer(const OneJob& job, const std::string& checkpoint = "last.ckpt") {
  return {BERTH_TRAINER,       "--epochs", "4",           "--samples", "4096",
          "--batch",           "32",       "--device-ms", "8",         "--checkpoint",
          job.file(checkpoint)};
}

std::string undisturbed_loss(OneJob& job) {
  Program program{{BERTH_TRAINER, "--epochs", "4", "--samples", "4096", "--batch", "32"},
                  {},
                  job.file("undisturbed.out")};
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit, 0) << ended.output;
  EXPECT_NE(ended.line("loss"), "");
  return ended.line("loss");
}

TEST(Trainer, PreemptedTwiceItReachesTheSameLossBitForBit) {
  OneJob job;
  const std::string expected = undisturbed_loss(job);
  for (const double until : {60.0, 200.0}) {
    Program program{trainer(job), job.begin(), job.file("out")};
    ASSERT_TRUE(job.wait_for_iteration(until));
    program.signal(SIGTERM);
    const Ended ended = program.wait();
    EXPECT_EQ(ended.exit, 143) << ended.output;
    EXPECT_NE(ended.line("stopped after"), "");
    ASSERT_TRUE(job.wait_until(
        [](const auto& figures) { return figures.checkpoint_iteration == figures.iterations; }));
  }
  Program program{trainer(job), job.begin(), job.file("out")};
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit, 0) << ended.output;
  EXPECT_NE(ended.line("continues after"), "");
  EXPECT_EQ(ended.line("loss"), expected);
}

TEST(Trainer, SplitsItsBatchAsToldAndLearnsTheSame) {
  OneJob job;
  const std::string expected = undisturbed_loss(job);
  job.hub().tell(OneJob::kJob, {.sub_steps = 4});
  Program program{trainer(job), job.begin(), job.file("out")};
  ASSERT_TRUE(job.wait_until([](const auto& figures) { return figures.sub_steps == 4; }));
  const Ended ended = program.wait();
  EXPECT_EQ(ended.line("sub-steps"), "sub-steps 4");
  EXPECT_EQ(ended.line("loss"), expected);
}

TEST(Trainer, SavesWhenAskedAndStopsOnlyIfToldTo) {
  OneJob job;
  Program program{trainer(job), job.begin(), job.file("out")};
  ASSERT_TRUE(job.wait_for_iteration(20));
  job.hub().ask_checkpoint(OneJob::kJob, 10, AfterCheckpoint::GoOn);
  ASSERT_TRUE(job.wait_until([](const auto& f) { return f.checkpoint_iteration.has_value(); }));
  const double saved = *job.hub().view(OneJob::kJob)->checkpoint_iteration;
  ASSERT_TRUE(job.wait_for_iteration(saved + 10));
  job.hub().ask_checkpoint(OneJob::kJob, 10, AfterCheckpoint::Stop);
  EXPECT_EQ(program.wait().exit, 143);
}

TEST(Trainer, GoesOnWhileTheSchedulerIsAwayAndSpeaksAgain) {
  OneJob job;
  const std::string expected = undisturbed_loss(job);
  Program program{trainer(job), job.begin(), job.file("out")};
  ASSERT_TRUE(job.wait_for_iteration(20));
  job.close();
  job.open();  // it knows nothing of the job any more
  ASSERT_TRUE(job.wait_for_iteration(21));
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit, 0) << ended.output;
  EXPECT_EQ(ended.line("loss"), expected);
}

TEST(Trainer, TheHubSeesHowFastItIs) {
  OneJob job;
  Program program{trainer(job), job.begin(), job.file("out")};
  ASSERT_TRUE(job.wait_for_iteration(100));
  const auto figures = *job.hub().view(OneJob::kJob);
  EXPECT_GT(figures.iterations_per_second, 5);    // busy machines sleep longer
  EXPECT_LT(figures.iterations_per_second, 126);  // a step takes 8 ms at least
  EXPECT_NEAR(figures.samples_per_second, 32 * figures.iterations_per_second,
              0.05 * figures.samples_per_second);
  ASSERT_TRUE(job.wait_for_iteration(128));
  ASSERT_TRUE(job.hub().report(OneJob::kJob).has_value());
  std::vector<double> losses;
  job.hub().losses(OneJob::kJob, 0, losses);
  EXPECT_GE(losses.size(), 2U);
  EXPECT_LT(losses.back(), losses.front());
}

TEST(Trainer, RefusesACheckpointOfAnotherTraining) {
  OneJob job;
  const auto command = [&](const char* seed) {
    return std::vector<std::string>{
        BERTH_TRAINER, "--epochs", "1", "--seed", seed, "--checkpoint", job.file("mixed.ckpt")};
  };
  EXPECT_EQ((Program{command("1"), {}, job.file("out")}.wait().exit), 0);
  EXPECT_EQ((Program{command("2"), {}, job.file("out")}.wait().exit), 1);
  EXPECT_EQ((Program{{BERTH_TRAINER, "--epoch", "1"}, {}, job.file("out")}.wait().exit), 2);
}

TEST(Trainer, WorkersChangeTheTimeAndNothingElse) {
  OneJob job;
  std::string first;
  for (const char* workers : {"1", "3"}) {
    Program program{{BERTH_TRAINER, "--epochs", "2", "--workers", workers, "--loader-work", "200"},
                    {},
                    job.file("out")};
    const std::string loss = program.wait().line("loss");
    EXPECT_NE(loss, "");
    EXPECT_TRUE(first.empty() || loss == first);
    first = loss;
  }
}

}  // namespace
}  // namespace berth::test
