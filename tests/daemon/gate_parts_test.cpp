// Each gate on its own: what keeps a job out, whom it names to be asked about again, what it says.
#include <gtest/gtest.h>

#include "daemon/array_gate.h"
#include "daemon/dependency_gate.h"
#include "daemon/hold_gate.h"
#include "daemon/quota_gate.h"
#include "daemon/start_time_gate.h"

namespace berth {
namespace {

LedgerJob job_of(JobNumber number, JobSpec spec = {}) {
  LedgerJob job;
  job.number = number;
  if (spec.user.empty()) spec.user = "ann";
  job.spec = std::make_shared<const JobSpec>(std::move(spec));
  return job;
}

TEST(HoldGate, KnowsThreeMarks) {
  HoldGate gate;
  gate.hold(1);
  gate.freeze(2);
  gate.refuse(3, "too large");
  EXPECT_FALSE(gate.is_open(1) || gate.is_open(2) || gate.is_open(3));
  EXPECT_TRUE(gate.is_kept(1) && gate.is_kept(2));
  EXPECT_FALSE(gate.is_kept(3));
  gate.release(1);
  gate.thaw(2);
  EXPECT_TRUE(gate.is_open(1) && gate.is_open(2));
  std::vector<ShutGate> shut;
  gate.explain(3, shut);
  ASSERT_EQ(shut.size(), 1U);
  EXPECT_EQ(shut[0].text, "too large");
  gate.set(job_of(3));  // it was changed, and may fit now
  EXPECT_TRUE(gate.is_open(3));
}

TEST(StartTimeGate, OpensAtItsMomentAndNamesTheJob) {
  StartTimeGate gate;
  const Time now = seconds_to_time(100);
  constexpr std::int64_t kWall = 1'700'000'000'000'000;
  JobSpec later;
  later.begin = kWall / 1'000'000 + 50;
  gate.add(1, later, now, kWall);
  gate.add(2, {}, now, kWall);
  EXPECT_FALSE(gate.is_open(1, now));
  EXPECT_TRUE(gate.is_open(2, now));
  EXPECT_EQ(gate.next(), now + std::chrono::seconds{50});
  gate.pause(2, now + std::chrono::seconds{10});
  EXPECT_EQ(gate.next(), now + std::chrono::seconds{10});
  std::set<JobNumber> recheck;
  gate.take_due(now + std::chrono::seconds{20}, recheck);
  EXPECT_EQ(recheck, (std::set<JobNumber>{2}));
  std::vector<ShutGate> shut;
  gate.explain(1, now, shut);
  ASSERT_EQ(shut.size(), 1U);
  EXPECT_EQ(shut[0].kind, GateKind::Begin);
  gate.change(1, {}, now, kWall);  // it asks for no time any more
  EXPECT_TRUE(gate.is_open(1, now));
  EXPECT_FALSE(gate.next());
}

TEST(ArrayGate, LetsInSoManyAtOnceAndRemembersWhoWaits) {
  ArrayGate gate;
  const ArrayMember member{.array = 1, .at_once = 2};
  gate.enter(1, member);
  EXPECT_TRUE(gate.is_open(member));
  gate.enter(2, member);
  EXPECT_FALSE(gate.is_open(member));
  gate.wait(3, member);
  std::set<JobNumber> recheck;
  gate.leave(member, recheck);
  EXPECT_EQ(recheck, (std::set<JobNumber>{3}));
  EXPECT_TRUE(gate.is_open(member));
  EXPECT_TRUE(gate.is_open({}));  // of no array
}

TEST(DependencyGate, SettlesWhatEndedBeforeAndAfterTheDependantCame) {
  DependencyGate gate{[](JobNumber number) -> std::optional<Outcome> {
    if (number == 90) return Outcome::Completed;
    return std::nullopt;
  }};
  const auto after_ok = [](JobNumber other) {
    JobSpec spec;
    spec.dependencies = {{DependencyKind::AfterOk, other}};
    return spec;
  };
  gate.add(job_of(1));
  gate.add(job_of(2, after_ok(1)));
  gate.add(job_of(3, after_ok(90)));
  gate.add(job_of(4, after_ok(1)));
  EXPECT_FALSE(gate.is_open(2));
  EXPECT_TRUE(gate.is_open(3));
  gate.change(job_of(4));  // waits for nobody any more
  EXPECT_TRUE(gate.is_open(4));
  std::set<JobNumber> recheck;
  gate.ended(1, Outcome::Failed, recheck);
  EXPECT_TRUE(recheck.empty());
  std::vector<UnsatisfiableJob> never;
  gate.take_unsatisfiable(never);
  ASSERT_EQ(never.size(), 1U);
  EXPECT_EQ(never[0].job, 2U);
  EXPECT_FALSE(gate.is_open(2));
}

LedgerJob in_array(JobNumber number, JobNumber first, std::int32_t index, JobSpec spec) {
  LedgerJob job = job_of(number, std::move(spec));
  job.array = first;
  job.array_index = index;
  return job;
}

JobSpec array_of(const char* indices, const char* dependencies = "") {
  JobSpec spec;
  spec.array = *parse_array(indices);
  if (*dependencies != 0) spec.dependencies = parse_dependencies(dependencies)->all;
  return spec;
}

JobSpec after(const char* dependencies) {
  JobSpec spec;
  spec.dependencies = parse_dependencies(dependencies)->all;
  return spec;
}

TEST(DependencyGate, TheNumberOfAnArrayStandsForAllOfItAndAnIndexForOne) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  gate.add(in_array(10, 10, 2, array_of("2,5")));
  gate.add(in_array(11, 10, 5, array_of("2,5")));
  gate.add(job_of(20, after("afterok:10")));
  gate.add(job_of(21, after("afterok:10_2")));
  gate.add(job_of(22, after("afterok:10_*")));
  gate.add(job_of(23, after("afterok:11")));  // a number of its own is that job alone
  std::set<JobNumber> recheck;
  gate.ended(10, Outcome::Completed, recheck);
  EXPECT_FALSE(gate.is_open(20));
  EXPECT_TRUE(gate.is_open(21));
  EXPECT_FALSE(gate.is_open(22));
  EXPECT_FALSE(gate.is_open(23));
  gate.ended(11, Outcome::Completed, recheck);
  for (const JobNumber job : {20U, 22U, 23U}) EXPECT_TRUE(gate.is_open(job)) << job;
}

TEST(DependencyGate, AftercorrWaitsForTheSameIndex) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  gate.add(in_array(10, 10, 1, array_of("1-2")));
  gate.add(in_array(11, 10, 2, array_of("1-2")));
  gate.add(in_array(20, 20, 1, array_of("1-3", "aftercorr:10")));
  gate.add(in_array(21, 20, 2, array_of("1-3", "aftercorr:10")));
  gate.add(in_array(22, 20, 3, array_of("1-3", "aftercorr:10")));
  std::vector<UnsatisfiableJob> never;
  gate.take_unsatisfiable(never);
  ASSERT_EQ(never.size(), 1U);  // the other array has no index 3
  EXPECT_EQ(never[0].job, 22U);
  std::set<JobNumber> recheck;
  gate.ended(11, Outcome::Completed, recheck);
  EXPECT_FALSE(gate.is_open(20));
  EXPECT_TRUE(gate.is_open(21));
}

TEST(DependencyGate, AnArrayThatIsOverIsKnownByWhatIsOnRecordOfIt) {
  DependencyGate gate{[](JobNumber number) -> std::optional<Outcome> {
                        if (number == 10) return Outcome::Failed;
                        return Outcome::Completed;
                      },
                      [](JobNumber number) -> std::optional<PastJob> {
                        PastJob past;
                        past.job = in_array(number, 10, 1, array_of("1-2"));
                        return past;
                      }};
  gate.add(job_of(20, after("afterok:10_2")));  // job 11
  EXPECT_TRUE(gate.is_open(20));
  gate.add(job_of(21, after("afterok:10")));
  EXPECT_FALSE(gate.is_open(21));
}

TEST(DependencyGate, WhoWaitsForAnArrayThatFailedIsGivenUp) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  gate.add(in_array(10, 10, 1, array_of("1-2")));
  gate.add(in_array(11, 10, 2, array_of("1-2")));
  gate.add(job_of(20, after("afterok:10")));
  std::set<JobNumber> recheck;
  gate.ended(11, Outcome::Failed, recheck);  // the other one still waits
  std::vector<UnsatisfiableJob> never;
  gate.take_unsatisfiable(never);
  ASSERT_EQ(never.size(), 1U);
  EXPECT_EQ(never[0].job, 20U);
  EXPECT_EQ(never[0].why, "afterok:10 can never be met: job 11 failed");
}

TEST(DependencyGate, AnArrayHasFailedOnceItIsOverAndOneOfItFailed) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  gate.add(in_array(10, 10, 1, array_of("1-2")));
  gate.add(in_array(11, 10, 2, array_of("1-2")));
  gate.add(job_of(20, after("afternotok:10")));
  std::set<JobNumber> recheck;
  gate.ended(10, Outcome::Failed, recheck);
  EXPECT_FALSE(gate.is_open(20));
  gate.ended(11, Outcome::Completed, recheck);
  EXPECT_FALSE(gate.has_unsatisfiable());
  EXPECT_TRUE(gate.is_open(20));
}

TEST(DependencyGate, AnArrayThatCompletedHasNotFailed) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  gate.add(in_array(10, 10, 1, array_of("1-2")));
  gate.add(in_array(11, 10, 2, array_of("1-2")));
  gate.add(job_of(20, after("afternotok:10")));
  std::set<JobNumber> recheck;
  gate.ended(10, Outcome::Completed, recheck);
  EXPECT_FALSE(gate.has_unsatisfiable());
  gate.ended(11, Outcome::Completed, recheck);
  std::vector<UnsatisfiableJob> never;
  gate.take_unsatisfiable(never);
  ASSERT_EQ(never.size(), 1U);
  EXPECT_EQ(never[0].why, "afternotok:10 can never be met: all jobs of array 10 completed");
}

TEST(DependencyGate, OneOfSeveralArraysIsEnoughButThatOneWhole) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  for (const JobNumber array : {10U, 20U})
    for (const JobNumber index : {1U, 2U})
      gate.add(
          in_array(array + index - 1, array, static_cast<std::int32_t>(index), array_of("1-2")));
  JobSpec spec;
  const auto asked = parse_dependencies("afterok:10?afterok:20");
  spec.dependencies = asked->all;
  spec.any_dependency = true;
  gate.add(job_of(30, spec));
  std::set<JobNumber> recheck;
  gate.ended(10, Outcome::Completed, recheck);
  gate.ended(20, Outcome::Failed, recheck);  // the second array can no longer do
  EXPECT_FALSE(gate.is_open(30));
  EXPECT_FALSE(gate.has_unsatisfiable());
  gate.ended(11, Outcome::Completed, recheck);
  EXPECT_TRUE(gate.is_open(30));
}

// Its scheduler ended between the end of the array and that of who waits for it; an older version
// let wait who was submitted after a job of the array had failed.
TEST(DependencyGate, AfterARestartOnlyWhatAnOlderVersionLeftStays) {
  DependencyGate gate{[](JobNumber number) -> std::optional<Outcome> {
                        return number == 11 ? Outcome::Failed : Outcome::Completed;
                      },
                      [](JobNumber number) -> std::optional<PastJob> {
                        PastJob past;
                        past.job = in_array(number, 10, 1, array_of("1-2"));
                        past.outcome = number == 11 ? Outcome::Failed : Outcome::Completed;
                        past.ended = Time{std::chrono::seconds{100}};
                        return past;
                      }};
  LedgerJob before = job_of(20, after("afterok:10"));
  before.submitted = Time{std::chrono::seconds{50}};
  LedgerJob later = job_of(21, after("afterok:10"));
  later.submitted = Time{std::chrono::seconds{150}};
  gate.add(before, DependencyGate::Origin::Recovered);
  gate.add(later, DependencyGate::Origin::Recovered);
  std::vector<UnsatisfiableJob> never;
  gate.take_unsatisfiable(never);
  ASSERT_EQ(never.size(), 1U);
  EXPECT_EQ(never[0].job, 20U);
  EXPECT_TRUE(gate.is_kept_unmet(21));
  later.number = 22;
  gate.add(later);
  EXPECT_FALSE(gate.is_kept_unmet(22));
  EXPECT_TRUE(gate.has_unsatisfiable());
}

TEST(DependencyGate, ADelayBeginsWithTheStart) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  gate.add(job_of(1));
  gate.add(job_of(2, after("after:1+5")));
  std::set<JobNumber> recheck;
  const Time start{std::chrono::seconds{100}};
  gate.started(1, start, recheck);
  EXPECT_TRUE(recheck.empty());
  EXPECT_EQ(gate.next(), start + std::chrono::minutes{5});
  gate.ended(1, Outcome::Completed, recheck);  // that it ended sooner changes nothing
  EXPECT_FALSE(gate.is_open(2));
  gate.take_due(start + std::chrono::minutes{5}, recheck);
  EXPECT_EQ(recheck, (std::set<JobNumber>{2}));
  EXPECT_TRUE(gate.is_open(2));
  EXPECT_FALSE(gate.next());
}

TEST(DependencyGate, ADelayHoldsAlsoAfterAJobThatIsOver) {
  DependencyGate gate{[](JobNumber) { return Outcome::Completed; },
                      [](JobNumber number) -> std::optional<PastJob> {
                        PastJob past;
                        past.job = job_of(number);
                        past.job.first_start = Time{std::chrono::seconds{100}};
                        return past;
                      }};
  gate.add(job_of(2, after("after:1+5")));
  EXPECT_FALSE(gate.is_open(2));
  EXPECT_EQ(gate.next(), Time{std::chrono::seconds{400}});
  std::set<JobNumber> recheck;
  gate.take_due(Time{std::chrono::seconds{400}}, recheck);
  EXPECT_TRUE(gate.is_open(2));
}

TEST(DependencyGate, WhoIsAskedToStayStaysAndSaysWhy) {
  DependencyGate gate{[](JobNumber) { return std::nullopt; }};
  JobSpec spec = after("afterok:1");
  spec.keep_unmet = true;
  gate.add(job_of(1));
  gate.add(job_of(2, spec));
  std::set<JobNumber> recheck;
  gate.ended(1, Outcome::Failed, recheck);
  EXPECT_FALSE(gate.has_unsatisfiable());
  EXPECT_TRUE(gate.is_kept_unmet(2));
  EXPECT_FALSE(gate.is_open(2));
  std::vector<ShutGate> shut;
  gate.explain(2, shut);
  ASSERT_EQ(shut.size(), 1U);
  EXPECT_EQ(shut[0].text,
            "afterok:1 can never be met: job 1 failed; it stays until it is changed or cancelled");
  gate.change(job_of(2));  // waits for nobody any more
  EXPECT_TRUE(gate.is_open(2));
}

TEST(QuotaGate, OffersRoomToThoseWhoWaitUntilTheShareIsFull) {
  QuotaGate gate;
  gate.set_limits("user/ann", {.jobs = 1});
  gate.offer_room([](JobNumber) { FAIL() << "nobody waits"; });
  JobSpec spec;
  spec.user = "ann";
  gate.enter(1, spec);
  EXPECT_FALSE(gate.is_open(spec));
  EXPECT_EQ(gate.full_limit(spec)->of, FullLimit::Of::Jobs);
  gate.wait(2, spec);
  gate.wait(3, spec);
  EXPECT_FALSE(gate.has_room_to_offer());
  gate.leave(spec);
  std::vector<JobNumber> offered;
  gate.offer_room([&](JobNumber job) {
    offered.push_back(job);
    gate.enter(job, spec);
  });
  EXPECT_EQ(offered, (std::vector<JobNumber>{2}));
}

TEST(QuotaGate, ASpentBudgetOpensAgainByItself) {
  QuotaGate gate;
  gate.set_half_life(100);
  gate.set_limits("group/ml", {.gpu_seconds = 50});
  JobSpec spec;
  spec.user = "ann";
  spec.group = "ml";
  const Time now = seconds_to_time(10);
  gate.add_use(spec, 200, now);
  EXPECT_TRUE(gate.is_spent(spec));
  EXPECT_EQ(gate.full_limit(spec)->of, FullLimit::Of::GpuTime);
  gate.wait(1, spec);
  const auto opens = gate.next();
  ASSERT_TRUE(opens);
  EXPECT_EQ(*opens, now + std::chrono::seconds{201});  // two half lives, and surely
  gate.settle(*opens);
  EXPECT_TRUE(gate.is_open(spec));
}

}  // namespace
}  // namespace berth
