// The parts of Gandiva_fair on its worked examples: gangs by stride, trading fast for slow devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/rng.h"
#include "policies/gandiva_fair/stride.h"
#include "policies/gandiva_fair/users.h"

namespace berth::gandiva_fair {
namespace {

double pass_of(const GangStride& stride, JobId job) {
  return std::ranges::find(stride.entries(), job, &GangStride::Entry::job)->pass;
}

/// A quantum on so many devices that are all alike: who runs, in order. Charges them.
std::vector<JobId> run_quantum(GangStride& stride, std::int64_t devices) {
  std::vector<JobId> taken;
  for (GangStride::Entry& entry : stride.order()) {
    if (entry.gpus > devices) continue;
    devices -= entry.gpus;
    taken.push_back(entry.job);
    entry.charge();
  }
  return taken;
}

TEST(GangStride, GpuTimeGoesByTickets) {
  constexpr std::array<int, 4> kGpus{1, 1, 2, 4};
  GangStride stride;
  stride.add(JobId{0}, 1, 1);
  stride.add(JobId{1}, 1, 1);
  stride.add(JobId{2}, 2, 1);
  stride.add(JobId{3}, 4, 2);
  std::vector<std::string> quanta;
  std::array<int, 4> got{};
  for (int quantum = 0; quantum < 12; ++quantum) {
    std::string jobs;
    for (const JobId job : run_quantum(stride, 4)) {
      jobs += static_cast<char>('a' + job.value);
      got[job.value] += kGpus[job.value];
    }
    quanta.push_back(jobs);
  }
  const std::vector<std::string> expected{"abc", "d", "abc", "abc", "d", "abc",
                                          "abc", "d", "abc", "abc", "d", "abc"};
  EXPECT_EQ(quanta, expected);
  EXPECT_EQ(got, (std::array<int, 4>{8, 8, 16, 16}));
}

TEST(GangStride, ANewcomerStartsAtTheSmallestPassPresent) {
  GangStride stride;
  stride.add(JobId{0}, 1, 1);
  for (int i = 0; i < 5; ++i) run_quantum(stride, 1);
  stride.add(JobId{1}, 1, 1);
  EXPECT_EQ(pass_of(stride, JobId{1}), 5);  // no arrears from before it came
  stride.remove(JobId{0});
  EXPECT_EQ(run_quantum(stride, 1), std::vector<JobId>{JobId{1}});
}

TEST(GangStride, WhoIsPassedOverIsNotCharged) {
  GangStride stride;
  stride.add(JobId{0}, 1, 1);
  stride.add(JobId{1}, 4, 1);
  EXPECT_EQ(run_quantum(stride, 4), std::vector<JobId>{JobId{0}});
  EXPECT_EQ(pass_of(stride, JobId{1}), 0);
  EXPECT_EQ(run_quantum(stride, 4), std::vector<JobId>{JobId{1}});
}

std::array<Holding, 2> two_users() { return {{{4, 4, 1.25}, {4, 4, 5}}}; }

TEST(Trading, TheWorkedExample) {
  auto users = two_users();
  EXPECT_DOUBLE_EQ(users[0].value(), 9);
  EXPECT_DOUBLE_EQ(users[1].value(), 24);
  EXPECT_EQ(trade(users, 2.5), 1);  // the buyer has 1.5 slow devices left
  EXPECT_DOUBLE_EQ(users[0].value(), 10.25);
  EXPECT_DOUBLE_EQ(users[1].value(), 26.5);
}

TEST(Trading, TheRulesRateOfTwoUsersIsTheSellersSpeedup) {
  auto users = two_users();
  const double rate = trading_rate(users);
  EXPECT_DOUBLE_EQ(rate, 1.25);
  EXPECT_EQ(trade(users, rate), 3);
  EXPECT_DOUBLE_EQ(users[0].value(), 9);  // the seller does not mind
  EXPECT_DOUBLE_EQ(users[1].value(), 35.25);
}

TEST(Trading, NobodyBuysWhatItGainsNothingBy) {
  auto users = two_users();
  EXPECT_EQ(trade(users, 5), 0);
}

TEST(Trading, NobodyEndsBelowItsValueAndNoDeviceIsLost) {
  Rng rng{3};
  for (int round = 0; round < 200; ++round) {
    std::vector<Holding> users;
    for (std::uint64_t i = 0; i < 2 + rng.below(5); ++i)
      users.push_back({static_cast<double>(rng.below(9)), static_cast<double>(rng.below(9)),
                       1 + static_cast<double>(rng.below(400)) / 100});
    const std::vector<Holding> before = users;
    static_cast<void>(trade(users, trading_rate(users)));
    double fast = 0, slow = 0;
    for (std::size_t i = 0; i < users.size(); ++i) {
      EXPECT_GE(users[i].value(), before[i].value() - 1e-9);
      EXPECT_GE(users[i].slow, 0);
      EXPECT_GE(users[i].fast, 0);
      fast += users[i].fast - before[i].fast;
      slow += users[i].slow - before[i].slow;
    }
    EXPECT_NEAR(fast, 0, 1e-9);
    EXPECT_NEAR(slow, 0, 1e-9);
  }
}

}  // namespace
}  // namespace berth::gandiva_fair
