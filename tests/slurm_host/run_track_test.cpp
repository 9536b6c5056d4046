// What each state of a run means for an attempt, one reading at a time.
#include <gtest/gtest.h>

#include <csignal>

#include "slurm_host/run_track.h"

namespace berth {
namespace {

using slurm::JobPhase;
using slurm::Refusal;

constexpr std::int64_t kNow = 1'700'000'000;
const slurm::Linked<void> kDone{};

slurm::Linked<void> no(Refusal refusal, std::string text = "no") {
  return tl::unexpected(slurm::LinkError{refusal, std::move(text)});
}

slurm::Job held() {
  slurm::Job job;
  job.key = {.job = 7, .restarts = 0, .submitted = kNow - 100};
  job.user = "ann";
  job.phase = JobPhase::Pending;
  return job;
}

slurm::Job released() {
  slurm::Job job = held();
  job.priority = 100;
  return job;
}

slurm::Job running(std::int64_t since = kNow - 50) {
  slurm::Job job = released();
  job.phase = JobPhase::Running;
  job.started = since;
  return job;
}

slurm::Job over(JobPhase phase, std::int32_t exit_code = 0) {
  slurm::Job job = running();
  job.phase = phase;
  job.exit_code = exit_code;
  job.ended = kNow - 1;
  return job;
}

/// Requeued: a later run of the same job.
slurm::Job again(slurm::Job job) {
  ++job.key.restarts;
  job.key.submitted = kNow;
  return job;
}

RunTrack placed(RunStage stage = RunStage::Placed) {
  RunTrack track{.attempt = {1, 1}, .job = 3};
  track.stage = stage;
  track.claim = Claim{.attempt = {1, 1},
                      .name = {.job = 7},
                      .user = "ann",
                      .restarts = 0,
                      .submitted = kNow - 100,
                      .nodes = {"n1"}};
  track.placed_at = kNow - 1;
  return track;
}

TrackStep step(RunTrack& track, const RunWish& wish, const slurm::Job& job) {
  return next_step(track, wish, &job, false, kNow, {});
}

const RunWish kRun{};
const RunWish kMakeWay{.stop = true};
const RunWish kEnd{.stop = true, .is_for_good = true};

TEST(RunTrack, PlacesOnlyWhatIsHeld) {
  RunTrack track{.attempt = {1, 1}, .job = 3};
  EXPECT_EQ(step(track, kRun, held()).verb, RunVerb::Place);
  EXPECT_EQ(step(track, kRun, released()).verb, RunVerb::None);  // it is held first
  const TrackStep elsewhere = step(track, kRun, running());
  ASSERT_TRUE(elsewhere.finding);  // started around us
  EXPECT_EQ(elsewhere.finding->found, Found::Void);
}

TEST(RunTrack, OneThatWasStoppedBeforeItsOrderIsVoid) {
  RunTrack track{.attempt = {1, 1}, .job = 3};
  const TrackStep told = step(track, kMakeWay, held());
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->found, Found::Void);
}

// Because a verb that failed may have been carried out, and carried out late: only a hold that was
// done, and a reading after it, tells that it will not begin.
TEST(RunTrack, IsVoidOnlyAfterItWasHeldAndSeenHeld) {
  RunTrack track = placed();
  note_sent(track, RunVerb::Place, no(Refusal::Unreachable, "timed out"), kNow, kRun);
  EXPECT_EQ(step(track, kRun, held()).verb, RunVerb::Hold);
  note_sent(track, RunVerb::Hold, no(Refusal::Unreachable), kNow, kRun);
  EXPECT_EQ(step(track, kRun, held()).verb, RunVerb::Hold);
  note_sent(track, RunVerb::Hold, kDone, kNow, kRun);
  const TrackStep told = step(track, kRun, held());
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->found, Found::Void);
}

TEST(RunTrack, RunsAfterAllThoughItsOrderSeemedToFail) {
  RunTrack track = placed();
  note_sent(track, RunVerb::Place, no(Refusal::Unreachable), kNow, kRun);
  const TrackStep begun = step(track, kRun, running());
  EXPECT_TRUE(begun.has_begun);
  EXPECT_FALSE(begun.finding);
  EXPECT_FALSE(step(track, kRun, running()).has_begun);  // told once
}

TEST(RunTrack, IsWithdrawnWhenSlurmDoesNotStartIt) {
  RunTrack track = placed();
  track.placed_at = kNow - 89;
  EXPECT_EQ(step(track, kRun, released()).verb, RunVerb::None);
  track.placed_at = kNow - 90;
  EXPECT_EQ(step(track, kRun, released()).verb, RunVerb::Hold);
  slurm::Job later = released();
  later.eligible = kNow + 10;  // the pause after a requeue is not its fault
  EXPECT_EQ(step(track, kRun, later).verb, RunVerb::None);
}

TEST(RunTrack, MakesWayByRequeueAndLeavesForGoodByCancel) {
  RunTrack track = placed(RunStage::Running);
  EXPECT_EQ(step(track, kMakeWay, running()).verb, RunVerb::Requeue);
  EXPECT_EQ(step(track, kEnd, running()).verb, RunVerb::Cancel);
  EXPECT_EQ(step(track, kMakeWay, running(kNow - 1)).verb, RunVerb::None);  // it has only begun
}

TEST(RunTrack, IsWarnedFirstWhereASignalIsSet) {
  const TrackRules rules{.warn_signal = SIGUSR1};
  const RunWish wish{.stop = true, .grace = 20};
  RunTrack track = placed(RunStage::Running);
  const slurm::Job job = running();
  EXPECT_EQ(next_step(track, wish, &job, false, kNow, rules).verb, RunVerb::Signal);
  note_sent(track, RunVerb::Signal, kDone, kNow, wish);
  EXPECT_EQ(next_step(track, wish, &job, false, kNow + 19, rules).verb, RunVerb::None);
  EXPECT_EQ(next_step(track, wish, &job, false, kNow + 20, rules).verb, RunVerb::Requeue);
}

// Because Slurm calls a job over that leaves with an error when it is warned, and we promised it
// another run.
TEST(RunTrack, OneThatLeftWithAnErrorToMakeWayWaitsAgain) {
  RunTrack track = placed(RunStage::Running);
  note_sent(track, RunVerb::Signal, kDone, kNow, kMakeWay);
  EXPECT_EQ(step(track, kMakeWay, over(JobPhase::Failed, 143)).verb, RunVerb::Requeue);
  note_sent(track, RunVerb::Requeue, kDone, kNow, kMakeWay);
  const TrackStep told = step(track, kMakeWay, again(held()));
  ASSERT_TRUE(told.finding);
  ASSERT_EQ(told.finding->found, Found::Ended);
  EXPECT_EQ(told.finding->exit->stopped, Stopped::Warned);
}

TEST(RunTrack, WhoWasDoneOrCancelledIsNotBroughtBack) {
  for (const JobPhase phase : {JobPhase::Completed, JobPhase::Cancelled, JobPhase::TimedOut}) {
    RunTrack track = placed(RunStage::Running);
    note_sent(track, RunVerb::Signal, kDone, kNow, kMakeWay);
    const TrackStep told = step(track, kMakeWay, over(phase));
    ASSERT_TRUE(told.finding) << to_string(phase);
    ASSERT_EQ(told.finding->found, Found::Ended);
    EXPECT_EQ(told.finding->exit->cancelled, phase == JobPhase::Cancelled);
    EXPECT_EQ(told.finding->exit->timed_out, phase == JobPhase::TimedOut);
  }
}

TEST(RunTrack, NothingIsOverWhileItsProcessesMayBeThere) {
  RunTrack track = placed(RunStage::Running);
  slurm::Job job = over(JobPhase::Completed);
  job.completing = true;
  const TrackStep told = step(track, kRun, job);
  EXPECT_FALSE(told.finding);
  EXPECT_EQ(told.verb, RunVerb::None);
}

TEST(RunTrack, ARequeueByOthersIsALossAndWaitsUntilTheJobIsHeld) {
  RunTrack track = placed(RunStage::Running);
  EXPECT_FALSE(step(track, kRun, again(released())).finding);
  const TrackStep told = step(track, kRun, again(held()));
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->found, Found::Lost);
}

TEST(RunTrack, AForgottenStartIsALoss) {
  RunTrack track = placed(RunStage::Running);
  EXPECT_EQ(step(track, kRun, released()).verb, RunVerb::Hold);
  const TrackStep told = step(track, kRun, held());
  ASSERT_TRUE(told.finding);
  EXPECT_EQ(told.finding->found, Found::Lost);
}

TEST(RunTrack, OneThatSlurmDoesNotKnowIsLostOrVoid) {
  RunTrack track = placed(RunStage::Running);
  EXPECT_FALSE(next_step(track, kRun, nullptr, false, kNow, {}).finding);
  EXPECT_EQ(next_step(track, kRun, nullptr, true, kNow, {}).finding->found, Found::Lost);
  track = placed();
  EXPECT_EQ(next_step(track, kRun, nullptr, true, kNow, {}).finding->found, Found::Void);
}

TEST(RunTrack, OnlyWhomWeSuspendedIsResumed) {
  RunTrack track = placed(RunStage::Running);
  slurm::Job job = running();
  EXPECT_EQ(step(track, {.is_suspended = true}, job).verb, RunVerb::Suspend);
  note_sent(track, RunVerb::Suspend, kDone, kNow, kRun);
  job.phase = JobPhase::Suspended;
  EXPECT_EQ(step(track, kRun, job).verb, RunVerb::Resume);
  note_sent(track, RunVerb::Resume, kDone, kNow, kRun);
  EXPECT_EQ(step(track, kRun, job).verb, RunVerb::None);  // somebody else's matter
}

}  // namespace
}  // namespace berth
