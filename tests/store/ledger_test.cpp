// The ledger's rules one by one; tests/store/ledger_property_test.cpp has the laws.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "store/ledger.h"

namespace berth {
namespace {

/// A ledger with a life, and a clock that moves a second per record.
struct Fixture : ::testing::Test {
  Fixture() { take(LifeRecord{.generation = 3}); }

  std::string try_apply(RecordBody body) {
    now += std::chrono::seconds{1};
    const auto change =
        ledger.apply({now, now.time_since_epoch().count() + 1'000, std::move(body)});
    return change ? "" : change.error().text();
  }
  Ledger::Change take(RecordBody body) {
    now += std::chrono::seconds{1};
    auto change = ledger.apply({now, now.time_since_epoch().count() + 1'000, std::move(body)});
    EXPECT_TRUE(change) << change.error().text();
    return change ? *std::move(change) : Ledger::Change{};
  }
  JobNumber submit(JobSpec spec = {}) {
    return take(SubmitRecord{ledger.next_number(), std::move(spec)}).job;
  }
  AttemptId start(JobNumber job) {
    const AttemptId attempt{ledger.generation(), ++counter};
    take(IntentRecord{.job = job, .attempt = attempt, .where = {{"n1", {0, 1}, {}}}, .gpus = 2});
    return attempt;
  }
  Ledger ledger;
  Time now{};
  std::uint64_t counter = 0;
};
using LedgerTest = Fixture;

TEST_F(LedgerTest, AnArrayTakesConsecutiveNumbersAndSharesOneSpec) {
  JobSpec spec;
  spec.array = ArraySpec{{0, 3, 6}, 0};
  const JobNumber first = submit(spec);
  EXPECT_EQ(ledger.next_number(), first + 3);
  EXPECT_EQ(ledger.find(first + 2)->array, first);
  EXPECT_EQ(ledger.find(first + 2)->array_index, 6);
  EXPECT_EQ(ledger.find(first)->spec, ledger.find(first + 2)->spec);
}

TEST_F(LedgerTest, AChangeTouchesOneJobOfAnArray) {
  JobSpec spec;
  spec.array = ArraySpec{{0, 1}, 0};
  spec.comment = "old";
  const JobNumber first = submit(spec);
  take(ChangeRecord{first, R"({"priority": 5, "comment": null})", "u"});
  EXPECT_EQ(ledger.find(first)->spec->priority, 5);
  EXPECT_EQ(ledger.find(first)->spec->comment, "");  // because null is the default
  EXPECT_EQ(ledger.find(first + 1)->spec->priority, 0);
}

TEST_F(LedgerTest, ChangesAreRefusedWhole) {
  const JobNumber job = submit();
  EXPECT_EQ(try_apply(ChangeRecord{job, R"({"priority": 5, "user": "root"})", "u"}),
            "job 1: user: cannot be changed");
  EXPECT_EQ(try_apply(ChangeRecord{job, "5", "u"}), "job 1: changes are a JSON object");
  EXPECT_NE(try_apply(ChangeRecord{job, R"({"priorty": 5})", "u"}).find("priority"),
            std::string::npos);
  EXPECT_EQ(ledger.find(job)->spec->priority, 0);
}

// A second passes with each record.
TEST_F(LedgerTest, CountsHowLongAnAttemptIsSuspendedByWhomever) {
  const JobNumber job = submit();
  const AttemptId attempt = start(job);
  take(WishRecord{job, Wish::Suspend, "ann", ""});
  const std::int64_t since = ledger.find(job)->attempt->suspended_wall;
  EXPECT_EQ(since, now.time_since_epoch().count() + 1'000);
  take(WishRecord{job, Wish::Suspend, kSchedulerName, ""});
  take(WishRecord{job, Wish::Resume, "ann", ""});  // its slice is over all the same
  EXPECT_EQ(ledger.find(job)->attempt->suspended_wall, since);
  take(WishRecord{job, Wish::Resume, kSchedulerName, ""});
  EXPECT_EQ(ledger.find(job)->attempt->suspended_wall, 0);
  EXPECT_EQ(ledger.find(job)->attempt->suspended_seconds, 3);
  take(EndRecord{.job = job, .attempt = attempt, .outcome = Outcome::Requeued, .is_final = false});
  const std::int64_t again = now.time_since_epoch().count() + 1'001'000;
  const AttemptId second = start(job);
  EXPECT_EQ(ledger.find(job)->attempt->suspended_seconds, 0);
  const auto change = take(EndRecord{.job = job,
                                     .attempt = second,
                                     .outcome = Outcome::Completed,
                                     .run_seconds = 4,
                                     .suspended_seconds = 2});
  ASSERT_TRUE(change.past);
  EXPECT_EQ(change.past->last_start_wall, again);
  EXPECT_EQ(change.past->last_run_seconds, 4);
  EXPECT_EQ(change.past->suspended_seconds, 2);
}

TEST_F(LedgerTest, AKeyIsOneJobWhileItLives) {
  JobSpec spec;
  spec.user = "ann";
  spec.key = "k";
  const JobNumber job = submit(spec);
  EXPECT_EQ(ledger.by_key("ann", "k"), job);
  EXPECT_EQ(try_apply(SubmitRecord{ledger.next_number(), spec}), "key 'k' of ann is job 1 already");
  spec.user = "bob";
  submit(spec);
  take(EndRecord{.job = job, .outcome = Outcome::Cancelled});
  EXPECT_EQ(ledger.by_key("ann", "k"), std::nullopt);
  EXPECT_EQ(ledger.by_key("ann", ""), std::nullopt);
}

TEST_F(LedgerTest, AtMostOneAttemptLives) {
  const JobNumber job = submit();
  const AttemptId attempt = start(job);
  EXPECT_EQ(try_apply(IntentRecord{.job = job, .attempt = {3, 2}}),
            "job 1: attempt 3.1 is still alive");
  take(EndRecord{.job = job, .attempt = attempt, .outcome = Outcome::Preempted, .is_final = false});
  EXPECT_EQ(ledger.find(job)->preemptions, 1);
  EXPECT_EQ(try_apply(IntentRecord{.job = job, .attempt = attempt}),
            "job 1: attempt 3.1 cannot follow 3.1 in life 3");
  take(LifeRecord{.generation = 5});
  EXPECT_EQ(try_apply(IntentRecord{.job = job, .attempt = {3, 9}}),
            "job 1: attempt 3.9 cannot follow 3.1 in life 5");
  take(IntentRecord{.job = job, .attempt = {5, 1}});
  EXPECT_EQ(ledger.find(job)->attempts, 2);
}

TEST_F(LedgerTest, AnEndIsNeverTakenBack) {
  const JobNumber job = submit();
  const AttemptId attempt = start(job);
  const EndRecord end{.job = job,
                      .attempt = attempt,
                      .outcome = Outcome::Completed,
                      .gpu_seconds = 20,
                      .run_seconds = 10};
  const auto change = take(end);
  ASSERT_TRUE(change.past);
  EXPECT_EQ(change.past->job.gpu_seconds, 20);
  EXPECT_EQ(change.past->where.front().node, "n1");
  EXPECT_EQ(try_apply(end), "job 1 is over");
  EXPECT_EQ(try_apply(IntentRecord{.job = job, .attempt = {3, 2}}), "job 1 is over");
  EXPECT_EQ(try_apply(WishRecord{job, Wish::Cancel, "u", ""}), "job 1 is over");
  EXPECT_EQ(try_apply(WishRecord{9, Wish::Cancel, "u", ""}), "there is no job 9");
}

TEST_F(LedgerTest, OnlyAJobThatDoesNotRunEndsWithoutAnAttempt) {
  const JobNumber job = submit();
  EXPECT_EQ(try_apply(EndRecord{.job = job, .outcome = Outcome::Completed}),
            "job 1: completed without an attempt, or to run again");
  EXPECT_EQ(try_apply(EndRecord{.job = job, .outcome = Outcome::Failed, .gpu_seconds = 1}),
            "job 1: time charged without an attempt");
  start(job);
  EXPECT_EQ(try_apply(EndRecord{.job = job, .outcome = Outcome::Cancelled}),
            "job 1: 0.0 is not its live attempt");
  EXPECT_EQ(
      try_apply(EndRecord{
          .job = job, .attempt = {3, 1}, .outcome = Outcome::Failed, .gpu_seconds = std::nan("")}),
      "job 1: its time is no amount");
}

TEST_F(LedgerTest, AWishMayComeBeforeTheEngineHasHeardOfIt) {
  const JobNumber job = submit();
  take(WishRecord{job, Wish::Hold, "ann", "lunch"});
  take(WishRecord{job, Wish::Cancel, "ann", ""});
  take(WishRecord{job, Wish::Cancel, "ann", ""});  // twice is once
  const AttemptId attempt = start(job);
  EXPECT_EQ(ledger.find(job)->stopping, Wish::Cancel);
  EXPECT_TRUE(ledger.find(job)->is_held);
  EXPECT_EQ(ledger.find(job)->held_by, "ann");
  // The engine takes it back for another reason: that it is cancelled still stands.
  take(EndRecord{.job = job, .attempt = attempt, .outcome = Outcome::Preempted, .is_final = false});
  EXPECT_EQ(ledger.find(job)->stopping, Wish::Cancel);
}

TEST_F(LedgerTest, TheStrongerWishStands) {
  const JobNumber job = submit();
  for (const Wish wish : {Wish::Preempt, Wish::Suspend, Wish::Resume, Wish::Requeue})
    EXPECT_EQ(try_apply(WishRecord{job, wish, "u", ""}),
              fmt::format("job 1 does not run: nothing to {}", to_string(wish)));
  const AttemptId attempt = start(job);
  take(WishRecord{job, Wish::Preempt, "scheduler", ""});
  EXPECT_EQ(ledger.find(job)->stopping, Wish::Preempt);
  take(WishRecord{job, Wish::Requeue, "u", ""});
  take(WishRecord{job, Wish::Preempt, "scheduler", ""});
  EXPECT_EQ(ledger.find(job)->stopping, Wish::Requeue);
  take(EndRecord{.job = job, .attempt = attempt, .outcome = Outcome::Requeued, .is_final = false});
  EXPECT_EQ(ledger.find(job)->stopping, std::nullopt);
}

// A person's wish is another one than the end of a slice; neither undoes the other.
TEST_F(LedgerTest, SuspensionByAPersonOutlivesTheAttempt) {
  const JobNumber job = submit();
  const AttemptId attempt = start(job);
  take(WishRecord{job, Wish::Suspend, "ann", "too hot"});
  EXPECT_FALSE(ledger.find(job)->attempt->is_suspended);
  take(WishRecord{job, Wish::Suspend, kSchedulerName, ""});
  take(WishRecord{job, Wish::Resume, kSchedulerName, ""});
  EXPECT_TRUE(ledger.find(job)->is_frozen);
  EXPECT_EQ(ledger.find(job)->frozen_by, "ann");
  EXPECT_EQ(ledger.find(job)->frozen_why, "too hot");
  take(EndRecord{.job = job, .attempt = attempt, .outcome = Outcome::Preempted, .is_final = false});
  EXPECT_TRUE(ledger.find(job)->is_frozen);
  EXPECT_EQ(try_apply(WishRecord{job, Wish::Resume, kSchedulerName, ""}),
            "job 1 does not run: nothing to resume");
  take(WishRecord{job, Wish::Resume, "bob", ""});
  EXPECT_FALSE(ledger.find(job)->is_frozen);
}

TEST_F(LedgerTest, SuspensionBySliceBelongsToTheAttempt) {
  const JobNumber job = submit();
  const AttemptId attempt = start(job);
  take(WishRecord{job, Wish::Suspend, kSchedulerName, ""});
  EXPECT_TRUE(ledger.find(job)->attempt->is_suspended);
  EXPECT_FALSE(ledger.find(job)->is_frozen);
  take(WishRecord{job, Wish::Resume, kSchedulerName, ""});
  EXPECT_FALSE(ledger.find(job)->attempt->is_suspended);
  take(
      EndRecord{.job = job, .attempt = attempt, .outcome = Outcome::NotStarted, .is_final = false});
  EXPECT_EQ(ledger.find(job)->first_start, std::nullopt);  // because it never began
}

TEST_F(LedgerTest, NothingComesBeforeTheFirstLife) {
  Ledger empty;
  const auto change = empty.apply({Time{}, 0, SubmitRecord{1, {}}});
  ASSERT_FALSE(change);
  EXPECT_EQ(change.error().text(), "a record 'submit' before the first life");
}

TEST_F(LedgerTest, TheClockNeverGoesBack) {
  const Time before = ledger.now();
  ASSERT_TRUE(ledger.apply({Time{}, 0, SettingRecord{"policy", "\"srtf\"", "admin"}}));
  EXPECT_EQ(ledger.now(), before);
  EXPECT_EQ(ledger.settings().at("policy"), "\"srtf\"");
  take(SettingRecord{"policy", "", "admin"});
  EXPECT_TRUE(ledger.settings().empty());
}

TEST_F(LedgerTest, DevicesAreNamedOnce) {
  const JobNumber job = submit();
  EXPECT_EQ(try_apply(IntentRecord{.job = job, .attempt = {3, 1}, .where = {{"n1", {0, 0}, {}}}}),
            "job 1: a device of node n1 twice");
  EXPECT_EQ(try_apply(IntentRecord{
                .job = job, .attempt = {3, 1}, .where = {{"n1", {0}, {}}, {"n1", {1}, {}}}}),
            "job 1: node n1 twice");
}

}  // namespace
}  // namespace berth
