// Fair share: the order of accounts, decay, and the reservation. The numbers are those of
// docs/policies/fair-share.md.
#include "policies/fair_share/accounts.h"

#include <gtest/gtest.h>

#include "support/policy_suite.h"
#include "support/run.h"

namespace berth::test {
namespace {

using namespace fair_share;

JobSpec job(std::string user, double submit, int gpus, double duration, std::string group = {}) {
  JobSpec spec{.submit = submit, .gpus = gpus, .duration = duration, .user = std::move(user)};
  spec.group = std::move(group);
  return spec;
}

/// Nothing is forgotten and nothing counts in advance: whole numbers.
Outcome run_plain(Settings settings, std::string cluster, std::vector<JobSpec> jobs) {
  settings.emplace_back("half_life", "0");
  settings.emplace_back("advance", "0");
  return run({.policy = "fair-share",
              .settings = std::move(settings),
              .cluster = std::move(cluster),
              .jobs = std::move(jobs)});
}

TEST(FairShare, WhoHasUsedLessPerShareComesFirst) {
  // At 10, when carol's job ends: alice 1000 / 2 = 500, bob 600 / 1. At 110 alice has used
  // 2 GPUs x 100 s more: 1200 / 2 = 600 as well, so that the earlier submit decides.
  const Outcome outcome = run_plain({{"shares", "alice:2"}, {"usage", "alice:1000,bob:600"}}, "1x2",
                                    {job("carol", 0, 2, 10), job("bob", 1, 2, 50),
                                     job("alice", 2, 2, 100), job("alice", 3, 2, 100)});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 110, 10, 160}));
}

TEST(FairShare, GroupsCompeteFirstThenUsersInsideThem) {
  // ml: (900 + 300) / 3 = 400 against vision 500; inside ml ben 300 before ann 900. At 110 ml has
  // 1300 / 3 = 433, at 210 1400 / 3 = 467: still before vision.
  const Outcome outcome =
      run_plain({{"shares", "group/ml:3"},
                 {"usage", "group/ml/ann:900,group/ml/ben:300,group/vision/cy:500"}},
                "1x1",
                {job("zed", 0, 1, 10), job("cy", 1, 1, 100, "vision"), job("ann", 2, 1, 100, "ml"),
                 job("ben", 3, 1, 100, "ml")});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 210, 110, 10}));
}

TEST(FairShare, ClassesComeBeforeShares) {
  JobSpec urgent = job("bob", 2, 1, 10);
  urgent.priority = 1;
  const Outcome outcome = run_plain({{"usage", "bob:1000000"}}, "1x1",
                                    {job("carol", 0, 1, 10), job("alice", 1, 1, 10), urgent});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 20, 10}));
}

TEST(FairShare, AgeRaisesAClass) {
  // bob's job is 60 s old at 61 and of class 1 then; alice's is 50 s old.
  const std::vector<JobSpec> jobs{job("carol", 0, 1, 61), job("bob", 1, 1, 10),
                                  job("alice", 11, 1, 10)};
  EXPECT_EQ(run_plain({{"usage", "bob:1000"}}, "1x1", jobs).start,
            (std::vector<double>{0, 71, 61}));
  EXPECT_EQ(run_plain({{"usage", "bob:1000"}, {"aging_interval", "60"}}, "1x1", jobs).start,
            (std::vector<double>{0, 61, 71}));
}

TEST(FairShare, SizeDecidesInsideAnAccountIfAsked) {
  const std::vector<JobSpec> jobs{job("a", 0, 4, 10), job("a", 1, 4, 10), job("a", 2, 3, 10)};
  EXPECT_EQ(run_plain({}, "1x4", jobs).start, (std::vector<double>{0, 10, 20}));
  EXPECT_EQ(run_plain({{"size", "small"}}, "1x4", jobs).start, (std::vector<double>{0, 20, 10}));
}

std::vector<JobSpec> two_bursts() {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(job("alice", 0, 1, 100));
  for (int i = 0; i < 4; ++i) jobs.push_back(job("bob", 0, 1, 100));
  return jobs;
}

TEST(FairShare, HeldGpusCountInAdvance) {
  // Nobody has used anything yet: without the advance the first to come takes all four GPUs.
  const Outcome outcome = run({.policy = "fair-share", .cluster = "1x4", .jobs = two_bursts()});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 100, 100, 0, 0, 100, 100}));
  EXPECT_EQ(run_plain({}, "1x4", two_bursts()).start,
            (std::vector<double>{0, 0, 0, 0, 100, 100, 100, 100}));
}

TEST(FairShare, ALargeGangIsReservedItsGpus) {
  // The gang of bob waits for 100. A job of 50 s may go before it, one of 200 s may not although
  // alice stands better.
  const Outcome outcome = run_plain({}, "1x4",
                                    {job("zed", 0, 3, 100), job("bob", 1, 4, 10),
                                     job("carol", 2, 1, 200), job("carol", 3, 1, 50)});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 100, 110, 3}));
}

/// One account uses, another waits behind a reservation it will be ahead of at a known moment.
TEST(FairShare, WakesUpWhenTheOrderOfAccountsChanges) {
  // bob's gang is first at 100 and keeps the free GPU from alice's long job. bob's other job uses
  // 3 GPUs: 3 x t passes alice's 1000 at 333.3, and a second later she starts.
  const Outcome outcome =
      run_plain({{"usage", "alice:1000"}}, "1x4",
                {job("bob", 0, 3, 1000), job("bob", 1, 4, 10), job("alice", 2, 1, 5000)});
  EXPECT_NEAR(outcome.start[2], 334.333, 0.001);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(FairShare, RefusesParametersThatMakeNoSense) {
  EXPECT_FALSE(make_policy("fair-share", {{"shares", "alice:0"}}));
  EXPECT_FALSE(make_policy("fair-share", {{"shares", "alice:1:2"}}));
  EXPECT_FALSE(make_policy("fair-share", {{"usage", "alice:-1"}}));
  EXPECT_FALSE(make_policy("fair-share", {{"preempt", "always"}}));
  EXPECT_FALSE(make_policy("fair-share", {{"preempt", "share"}, {"min_run", "0"}}));
  EXPECT_FALSE(make_policy("fair-share", {{"preempt", "both"}, {"advance", "0"}}));
}

TEST(FairShare, IsSoundUnderEveryRule) {
  for (const std::string preempt : {"off", "priority", "share", "both"}) {
    SCOPED_TRACE(preempt);
    expect_sound(
        [&] {
          return *make_policy("fair-share", {{"preempt", preempt},
                                             {"min_run", "6"},
                                             {"advance", "4"},
                                             {"half_life", "40"},
                                             {"aging_interval", preempt == "both" ? "9" : "0"},
                                             {"shares", "u1:2"}});
        },
        60);
  }
}

// --- accounts

Time at(double seconds) { return seconds_to_time(seconds); }

Accounts accounts_of(double half_life, double advance) {
  return Accounts{
      {.half_life = seconds_to_duration(half_life), .advance = seconds_to_duration(advance)}};
}

TEST(Accounts, UseHalvesEveryHalfLife) {
  Accounts accounts = accounts_of(1000, 0);
  const AccountId alice = accounts.leaf("alice", "");
  const AccountId bob = accounts.leaf("bob", "");
  accounts.add_use("alice", 1000);
  accounts.settle(at(50));  // use from before is as of the first look
  EXPECT_DOUBLE_EQ(accounts.used(alice), 1000);
  accounts.hold(bob, 1);
  accounts.settle(at(1050));
  EXPECT_NEAR(accounts.used(alice), 500, 1e-9);
  EXPECT_NEAR(accounts.used(bob), 721.348, 0.001);  // 1000 / ln 2 x (1 - 1/2)
  accounts.hold(bob, -1);
  accounts.settle(at(3050));
  EXPECT_NEAR(accounts.used(alice), 125, 1e-9);
  EXPECT_NEAR(accounts.used(bob), 180.337, 0.001);
}

TEST(Accounts, LookingOftenerChangesNothing) {
  Accounts seldom = accounts_of(777, 60);
  Accounts often = accounts_of(777, 60);
  for (Accounts* accounts : {&seldom, &often}) {
    accounts->add_use("group/ml/alice", 5000);
    accounts->settle(at(0));
    accounts->hold(accounts->leaf("alice", "ml"), 3);
  }
  for (int i = 1; i <= 1000; ++i) often.settle(at(i * 3.5));
  seldom.settle(at(3500));
  const AccountId alice = seldom.leaf("alice", "ml");
  EXPECT_NEAR(often.used(alice) / seldom.used(alice), 1, 1e-12);
  EXPECT_DOUBLE_EQ(seldom.used(alice), seldom.used(seldom.top(alice)));
}

TEST(Accounts, ForeseesWhenOnePassesTheOther) {
  for (const double half_life : {0.0, 500.0, 40'000.0}) {
    SCOPED_TRACE(half_life);
    Accounts accounts = accounts_of(half_life, 100);
    const AccountId a = accounts.leaf("a", "");
    const AccountId b = accounts.leaf("b", "");
    accounts.set_share("b", 2);
    accounts.add_use("a", 900);
    accounts.settle(at(0));
    accounts.hold(b, 8);
    const Accounts::Lead lead{.a = a, .b = b, .more = 2, .factor = 1.25};
    // (900 + 200) x 1.25 = 1375 against 8 x 100 / 2 = 400 that grows by 4 a second at first.
    ASSERT_FALSE(accounts.is_ahead(lead));
    const auto when = accounts.ahead_at(lead);
    ASSERT_TRUE(when);
    if (half_life == 0) {
      EXPECT_NEAR(to_seconds(*when), 975.0 / 4, 1e-6);
    }
    accounts.settle(*when - std::chrono::milliseconds{1});
    EXPECT_FALSE(accounts.is_ahead(lead));
    accounts.settle(*when + std::chrono::milliseconds{1});
    EXPECT_TRUE(accounts.is_ahead(lead));
    EXPECT_FALSE(accounts.ahead_at(lead)) << "it is";
  }
}

TEST(Accounts, SaysNeverWhereUseCanNotPass) {
  Accounts accounts = accounts_of(500, 100);
  const AccountId a = accounts.leaf("a", "");
  const AccountId b = accounts.leaf("b", "");
  accounts.add_use("a", 900);
  accounts.settle(at(0));
  EXPECT_FALSE(accounts.ahead_at({.a = a, .b = b})) << "both only forget, in step";
  accounts.hold(a, 1);
  EXPECT_FALSE(accounts.ahead_at({.a = a, .b = b}));
}

TEST(Accounts, ASharePerUserHoldsInsideGroupsToo) {
  Accounts accounts = accounts_of(0, 0);
  accounts.add_use("group/ml/ann", 100);
  accounts.add_use("group/ml/ben", 100);
  accounts.add_use("group/ml", 50);
  accounts.set_share("ann", 2);
  accounts.set_share("group/ml/ben", 4);
  accounts.set_share("ben", 10);
  accounts.settle(at(0));
  EXPECT_DOUBLE_EQ(accounts.standing(accounts.leaf("ann", "ml")), 50);
  EXPECT_DOUBLE_EQ(accounts.standing(accounts.leaf("ben", "ml")), 25);
  EXPECT_DOUBLE_EQ(accounts.standing(accounts.top(accounts.leaf("ben", "ml"))), 250);
  EXPECT_DOUBLE_EQ(accounts.standing(accounts.leaf("ben", "")), 0) << "by himself he used nothing";
}

}  // namespace
}  // namespace berth::test
