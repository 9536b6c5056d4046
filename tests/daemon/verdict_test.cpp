#include "daemon/verdict.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

ExitRecord exit_of(int code, int signal = 0, Stopped stopped = Stopped::No) {
  ExitRecord exit;
  exit.exit_code = code;
  exit.signal = signal;
  exit.stopped = stopped;
  return exit;
}

// What the shim knows of the cause goes before the signal that everybody sees.
TEST(Verdict, SaysThatItRanOutOfMemory) {
  ExitRecord exit;
  exit.signal = 9;
  EXPECT_EQ(how_it_ended(exit), "killed by signal 9");
  exit.why = "out of memory: its limit is 200 MiB";
  EXPECT_EQ(how_it_ended(exit), "out of memory: its limit is 200 MiB (killed by signal 9)");
  EXPECT_EQ(judge({}, Ending::ByItself, exit, 0).why, how_it_ended(exit));
}

TEST(Verdict, AnEndOfItsOwnIsCalledWhatItWas) {
  const JobSpec spec;
  EXPECT_EQ(judge(spec, Ending::ByItself, exit_of(0), 0).outcome, Outcome::Completed);
  EXPECT_EQ(judge(spec, Ending::ByItself, exit_of(2), 0).outcome, Outcome::Failed);
  EXPECT_EQ(judge(spec, Ending::ByItself, exit_of(0, 11), 0).outcome, Outcome::Failed);
  ExitRecord late = exit_of(0, 15);
  late.timed_out = true;
  EXPECT_EQ(judge(spec, Ending::ByItself, late, 0).outcome, Outcome::TimedOut);
}

TEST(Verdict, WhoWasDoneBeforeItHeardIsDone) {
  const JobSpec spec;
  for (const Ending ending : {Ending::Cancel, Ending::Preempt, Ending::Requeue, Ending::Kill}) {
    const Verdict verdict = judge(spec, ending, exit_of(0), 0);
    EXPECT_EQ(verdict.outcome, Outcome::Completed);
    EXPECT_TRUE(verdict.is_final);
  }
}

TEST(Verdict, WhoSaysInItsGraceThatItIsDoneIsNotRunAgain) {
  const JobSpec spec;
  const Verdict verdict = judge(spec, Ending::Preempt, exit_of(0, 0, Stopped::Warned), 0);
  EXPECT_EQ(verdict.outcome, Outcome::Completed);
  EXPECT_TRUE(verdict.is_final);
}

TEST(Verdict, WhoMakesWayWithAnyOtherExitIsRunAgain) {
  const JobSpec spec;
  for (const ExitRecord& exit :
       {exit_of(143, 0, Stopped::Warned), exit_of(1, 0, Stopped::Warned),
        exit_of(0, 15, Stopped::Warned), exit_of(0, 9, Stopped::Killed), exit_of(1)}) {
    const Verdict verdict = judge(spec, Ending::Preempt, exit, 0);
    EXPECT_EQ(verdict.outcome, Outcome::Preempted);
    EXPECT_FALSE(verdict.is_final);
  }
}

TEST(Verdict, WhatPeopleAskedForStandsAfterACleanExitInItsGrace) {
  const JobSpec spec;
  ExitRecord clean = exit_of(0, 0, Stopped::Warned);
  EXPECT_EQ(judge(spec, Ending::Cancel, clean, 0).outcome, Outcome::Cancelled);
  EXPECT_TRUE(judge(spec, Ending::Cancel, clean, 0).is_final);
  EXPECT_EQ(judge(spec, Ending::Kill, clean, 0).outcome, Outcome::Cancelled);
  EXPECT_EQ(judge(spec, Ending::Requeue, clean, 0).outcome, Outcome::Requeued);
  EXPECT_FALSE(judge(spec, Ending::Requeue, clean, 0).is_final);
  clean.timed_out = true;
  for (const Ending ending : {Ending::ByItself, Ending::Preempt, Ending::Cancel})
    EXPECT_EQ(judge(spec, ending, clean, 0).outcome, Outcome::TimedOut);
}

TEST(Verdict, RetriesEndAndPausesGrow) {
  JobSpec spec;
  spec.max_retries = 2;
  EXPECT_FALSE(judge(spec, Ending::ByItself, exit_of(1), 0).is_final);
  EXPECT_FALSE(judge(spec, Ending::ByItself, exit_of(1), 1).is_final);
  EXPECT_TRUE(judge(spec, Ending::ByItself, exit_of(1), 2).is_final);
  EXPECT_LT(pause_after(0), pause_after(3));
  EXPECT_EQ(pause_after(100), Duration{std::chrono::minutes{5}});
}

TEST(Verdict, TheRequeueExitCodeMeansAgain) {
  JobSpec spec;
  spec.requeue_exit_code = 99;
  const Verdict again = judge(spec, Ending::ByItself, exit_of(99), 50);
  EXPECT_EQ(again.outcome, Outcome::Requeued);
  EXPECT_FALSE(again.is_final);
  EXPECT_TRUE(judge(spec, Ending::ByItself, exit_of(98), 0).is_final);
}

TEST(Verdict, LostAttemptsRunAgainUnlessToldOtherwise) {
  JobSpec spec;
  const Verdict lost = judge_lost(spec, Ending::ByItself, "its shim was killed");
  EXPECT_FALSE(lost.is_final);
  EXPECT_EQ(lost.outcome, Outcome::NodeFailed);
  EXPECT_EQ(lost.why, "its shim was killed");
  EXPECT_EQ(lost.pause, Duration{});
  EXPECT_EQ(judge_lost(spec, Ending::Cancel, "").outcome, Outcome::Cancelled);
  spec.requeue = false;
  EXPECT_TRUE(judge_lost(spec, Ending::ByItself, "").is_final);
}

TEST(Verdict, WhoIsLostAgainAndAgainWaitsLongerEachTime) {
  const JobSpec spec;
  EXPECT_EQ(judge_lost(spec, Ending::ByItself, "", 1).pause, pause_after(0));
  EXPECT_EQ(judge_lost(spec, Ending::ByItself, "", 4).pause, pause_after(3));
}

TEST(Verdict, ALaunchIsTriedAFewTimesOnly) {
  EXPECT_FALSE(judge_unlaunched(Ending::ByItself, "no memory", 0).is_final);
  EXPECT_TRUE(judge_unlaunched(Ending::ByItself, "no memory", 5).is_final);
  EXPECT_TRUE(judge_unlaunched(Ending::Cancel, "no memory", 0).is_final);
}

}  // namespace
}  // namespace berth
