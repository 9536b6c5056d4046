// What policies share: kinds of jobs, beliefs by kind, queues by kind, attempts that are undone.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/device_mask.h"
#include "policies/common/job_list.h"
#include "policies/common/speed_curve.h"
#include "policies/kit/beliefs.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/groups.h"
#include "policies/kit/job_timers.h"
#include "policies/kit/memo.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"
#include "support/run.h"

namespace berth::test::kit_tests {
namespace {

/// Looks at everything once, when all have come.
class Looking final : public Policy {
 public:
  using Look = std::function<void(Pass&)>;
  explicit Looking(Look look) : look_(std::move(look)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "looking"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::Profile}; }
  void on_arrival(const View&, JobId job) override { waiting_.push_back(job); }
  void decide(const View& view, Plan& plan, Rng& rng) override {
    Pass pass{view, plan, rng};
    if (!has_looked_) look_(pass);
    has_looked_ = true;
    std::erase_if(waiting_, [&](JobId job) { return plan.holds(job) || plan.try_start(job); });
  }

 private:
  Look look_;
  bool has_looked_ = false;
  std::vector<JobId> waiting_;
};

Scenario jobs_of(std::vector<JobSpec> jobs, std::string cluster = "2x4") {
  Scenario scenario;
  scenario.cluster = std::move(cluster);
  scenario.placement = "best-fit";
  scenario.jobs = std::move(jobs);
  return scenario;
}

TEST(Kind, IsTheSameForJobsThatAreAlikeButForTheirLength) {
  const Scenario scenario = jobs_of({{.submit = 0, .gpus = 2, .duration = 10},
                                     {.submit = 0, .gpus = 2, .duration = 99},
                                     {.submit = 0, .gpus = 1, .duration = 10}});
  Looking policy{[](Pass& pass) {
    const auto kind = [&](std::uint32_t job) { return pass.view.jobs.kind[JobId{job}]; };
    EXPECT_EQ(kind(0), kind(1));
    EXPECT_NE(kind(0), kind(2));
    EXPECT_EQ(pass.view.kind(JobId{0}).wanted, 2);
    EXPECT_EQ(pass.view.kind(JobId{0}).shape, pass.view.jobs.shape[JobId{0}]);
    EXPECT_EQ(pass.view.kinds.size(), 2U);
  }};
  static_cast<void>(run_with(scenario, policy));
}

TEST(Beliefs, AreThoseOfTheRateModel) {
  const Scenario scenario = jobs_of({{.submit = 0, .gpus = 2, .duration = 10}});
  Looking policy{[](Pass& pass) {
    const View& view = pass.view;
    const JobId job{0};
    const PoolId pool{0};
    Beliefs beliefs;
    EXPECT_EQ(beliefs.rate(view, job, pool), believed_rate(view, job, pool, 2));
    const std::vector<double> curve = beliefs.curve(view, job, pool, 4);
    ASSERT_GE(curve.size(), 5U);
    EXPECT_EQ(curve[0], 0);
    for (std::int32_t gpus = 1; gpus <= 4; ++gpus)
      EXPECT_EQ(curve[static_cast<std::size_t>(gpus)], believed_rate(view, job, pool, gpus));
  }};
  static_cast<void>(run_with(scenario, policy));
}

TEST(Memo, MakesARowOnceAndKeepsItsAddress) {
  Memo<KindId, int> memo;
  int made = 0;
  const auto make = [&] { return ++made; };
  EXPECT_EQ(memo.find(KindId{3}), nullptr);
  int& third = memo.of(KindId{3}, make);
  for (std::uint32_t i = 0; i < 100; ++i) static_cast<void>(memo.of(KindId{i}, make));
  EXPECT_EQ(&memo.of(KindId{3}, make), &third);
  EXPECT_EQ(third, 1);
  EXPECT_EQ(made, 100);
}

TEST(Memo, MayAskForAnotherRowWhileItMakesOne) {
  Memo<KindId, int> memo;
  const int made = memo.of(KindId{0}, [&] { return 1 + memo.of(KindId{50}, [] { return 7; }); });
  EXPECT_EQ(made, 8);
}

TEST(WaitingJobs, AreTriedByKeyAndAKindWithoutAPlaceIsLeftAlone) {
  WaitingByKind waiting;
  waiting.push(KindId{0}, {5, JobId{0}});
  waiting.push(KindId{0}, {7, JobId{1}});
  waiting.push(KindId{1}, {6, JobId{2}});
  waiting.push(KindId{1}, {8, JobId{3}});
  waiting.push(KindId{2}, {1, JobId{4}});
  std::vector<std::uint32_t> tried;
  const auto pass = [&](auto&& answer) {
    tried.clear();
    waiting.pass([](KindId kind) { return kind.value < 2; },
                 [&](JobId job) {
                   tried.push_back(job.value);
                   return answer(job);
                 });
  };
  pass([](JobId job) { return job.value < 2 ? Tried::NoPlace : Tried::Started; });
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{0, 2, 3}));
  pass([](JobId) { return Tried::Enough; });
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{0}));
  waiting.forget(KindId{0}, JobId{0});
  pass([](JobId) { return Tried::Started; });
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(waiting.active(), (std::vector<KindId>{KindId{2}}));
}

TEST(WaitingJobs, StayBlockedOverSeveralPassesUntilDevicesComeBack) {
  WaitingByShape waiting;
  waiting.push(ShapeId{0}, JobId{0});
  waiting.push(ShapeId{1}, JobId{1});
  std::vector<std::uint32_t> tried;
  const auto resume = [&](Tried answer) {
    tried.clear();
    waiting.resume([](ShapeId) { return true; },
                   [&](JobId job) {
                     tried.push_back(job.value);
                     return answer;
                   });
    return tried;
  };
  EXPECT_EQ(resume(Tried::NoPlace), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(waiting.is_blocked(ShapeId{0}));
  EXPECT_EQ(waiting.first(), std::nullopt);
  waiting.push(ShapeId{2}, JobId{2});
  EXPECT_EQ(resume(Tried::Started), (std::vector<std::uint32_t>{2}));
  waiting.unblock();
  EXPECT_EQ(resume(Tried::Started), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(waiting.empty());
}

// Whoever makes way for a job waits again, perhaps in the same group and before it.
TEST(WaitingJobs, MayBePushedWhileOneOfThemStarts) {
  WaitingByShape waiting;
  const ShapeId shape{0};
  waiting.push(shape, JobId{5});
  std::vector<std::uint32_t> tried;
  waiting.pass([](ShapeId) { return true; },
               [&](JobId job) {
                 tried.push_back(job.value);
                 if (job != JobId{5}) return Tried::NoPlace;
                 waiting.push(shape, JobId{3});
                 return Tried::Started;
               });
  EXPECT_EQ(tried, (std::vector<std::uint32_t>{5, 3}));
  EXPECT_EQ(waiting.pop(shape).job, JobId{3});
  EXPECT_TRUE(waiting.empty());
}

TEST(WaitingJobs, AGroupIsActiveWhileSomebodyWaitsInIt) {
  WaitingByShape waiting;
  for (std::uint32_t i = 0; i < 5; ++i) waiting.push(ShapeId{i}, JobId{i});
  waiting.forget(ShapeId{1}, JobId{1});
  waiting.forget(ShapeId{1}, JobId{1});
  waiting.pop(ShapeId{4});
  waiting.push(ShapeId{1}, JobId{1});
  std::vector<ShapeId> active = waiting.active();
  std::ranges::sort(active);
  EXPECT_EQ(active, (std::vector<ShapeId>{{0}, {1}, {2}, {3}}));
  EXPECT_TRUE(waiting.empty(ShapeId{4}));
  EXPECT_TRUE(waiting.empty(ShapeId{99}));
  std::vector<JobId> jobs;
  waiting.drain(jobs);
  EXPECT_EQ(jobs.size(), 4U);
  EXPECT_TRUE(waiting.empty());
}

TEST(Groups, NumberKeysInTheOrderInWhichTheyAreSeen) {
  Groups<std::pair<int, ShapeId>> groups;
  EXPECT_EQ(groups.of({7, ShapeId{1}}), GroupId{0});
  EXPECT_EQ(groups.of({3, ShapeId{1}}), GroupId{1});
  EXPECT_EQ(groups.of({7, ShapeId{1}}), GroupId{0});
  EXPECT_EQ(groups[GroupId{1}].first, 3);
  EXPECT_EQ(groups.size(), 2U);
}

TEST(BlockedSet, ForgetsEverythingWhenItIsCleared) {
  BlockedSet<ShapeId> blocked;
  EXPECT_FALSE(blocked.has(ShapeId{0}));
  blocked.add(ShapeId{3});
  blocked.add(ShapeId{4});
  blocked.remove(ShapeId{4});
  EXPECT_TRUE(blocked.has(ShapeId{3}));
  EXPECT_FALSE(blocked.has(ShapeId{2}));
  EXPECT_FALSE(blocked.has(ShapeId{4}));
  blocked.clear();
  EXPECT_FALSE(blocked.has(ShapeId{3}));
}

TEST(BlockedPlaces, TellPoolsApart) {
  BlockedPlaces blocked;
  blocked.begin(3);
  blocked.add(ShapeId{1}, PoolId{2});
  EXPECT_TRUE(blocked.has(ShapeId{1}, PoolId{2}));
  EXPECT_FALSE(blocked.has(ShapeId{1}, PoolId{1}));
  EXPECT_FALSE(blocked.has(ShapeId{2}, PoolId{2}));
  blocked.clear();
  EXPECT_FALSE(blocked.has(ShapeId{1}, PoolId{2}));
}

TEST(BlockedSet, AShapeThatWasDeclinedIsNotTriedAgain) {
  const Scenario scenario = jobs_of({{.submit = 0, .gpus = 8, .duration = 10},
                                     {.submit = 0, .gpus = 8, .duration = 10},
                                     {.submit = 0, .gpus = 4, .duration = 10}});
  Looking policy{[](Pass& pass) {
    BlockedSet<ShapeId> blocked;
    EXPECT_TRUE(try_start_unblocked(pass.plan, blocked, JobId{0}));
    EXPECT_FALSE(try_start_unblocked(pass.plan, blocked, JobId{1}));
    pass.plan.preempt(JobId{0});
    EXPECT_FALSE(try_start_unblocked(pass.plan, blocked, JobId{1}));  // nobody said so
    EXPECT_TRUE(try_start_unblocked(pass.plan, blocked, JobId{2}));
  }};
  static_cast<void>(run_with(scenario, policy));
}

TEST(Pass, AJobThatCannotStartAgainStaysWhereItIs) {
  const Scenario scenario = jobs_of({{.submit = 0, .gpus = 4, .duration = 10}});
  Looking policy{[](Pass& pass) {
    EXPECT_TRUE(pass.plan.try_start(JobId{0}));
    const std::vector<Slice> before = devices_of(pass.plan, JobId{0});
    const auto restart = [&](bool starts) {
      return try_restart(pass.plan, JobId{0}, Reason::Locality, [&] {
        EXPECT_FALSE(pass.plan.holds(JobId{0}));
        return starts && pass.plan.try_start(JobId{0});
      });
    };
    EXPECT_FALSE(restart(false));
    EXPECT_EQ(devices_of(pass.plan, JobId{0}), before);
    EXPECT_TRUE(restart(true));
    EXPECT_TRUE(pass.plan.holds(JobId{0}));
  }};
  static_cast<void>(run_with(scenario, policy));
}

TEST(Pass, AnAttemptThatFailsNeverWas) {
  const Scenario scenario =
      jobs_of({{.submit = 0, .gpus = 4, .duration = 10}, {.submit = 0, .gpus = 4, .duration = 10}});
  Looking policy{[](Pass& pass) {
    std::vector<std::string> book;
    const auto write = [&](const std::string& line) {
      book.push_back(line);
      pass.plan.on_rollback([&book] { book.pop_back(); });
    };
    EXPECT_TRUE(pass.attempt([&] {
      write("kept");
      return pass.plan.try_start(JobId{0});
    }));
    EXPECT_FALSE(pass.attempt([&] {
      write("given up");
      EXPECT_TRUE(pass.plan.try_start(JobId{1}));
      // What was noted before is undone after what was planned since.
      pass.plan.on_rollback([&] { EXPECT_TRUE(pass.plan.holds(JobId{1})); });
      pass.attempt([&] {
        write("inside");
        pass.plan.preempt(JobId{1});
        return true;
      });
      EXPECT_EQ(book.size(), 3U);
      return false;
    }));
    EXPECT_EQ(book, (std::vector<std::string>{"kept"}));
    EXPECT_TRUE(pass.plan.holds(JobId{0}));
    EXPECT_FALSE(pass.plan.holds(JobId{1}));
  }};
  const auto ran = run_with(scenario, policy);
  EXPECT_NEAR(ran.finish[1], 10, 1e-3);
}

TEST(BitSet, CanBeWalkedAndBearsDoubles) {
  NodeSet set{300};
  for (const std::uint32_t node : {299U, 0U, 64U, 64U}) set.insert(NodeId{node});
  set.erase(NodeId{7});
  std::vector<std::uint32_t> seen;
  for (const NodeId node : set) seen.push_back(node.value);
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 64, 299}));
  EXPECT_EQ(set.size(), 3U);
}

TEST(DeviceMask, IsWalkedFromTheLowest) {
  constexpr DeviceMask mask{0b1011'0000U};
  std::vector<std::int32_t> seen;
  for (const std::int32_t device : mask) seen.push_back(device);
  EXPECT_EQ(seen, (std::vector<std::int32_t>{4, 5, 7}));
  static_assert(mask.size() == 3 && mask.front() == 4 && mask.lowest(2) == 0b0011'0000U);
  static_assert(DeviceMask{~std::uint64_t{0}}.size() == 64 && DeviceMask{0}.empty());
}

TEST(JobList, IsInOrderOfArrival) {
  JobList list;
  for (const std::uint32_t job : {7U, 2U, 9U, 2U}) list.insert(JobId{job});
  list.erase(JobId{3});
  list.erase(JobId{7});
  EXPECT_EQ(std::vector<JobId>(list.begin(), list.end()), (std::vector{JobId{2}, JobId{9}}));
  EXPECT_TRUE(list.contains(JobId{9}));
  EXPECT_FALSE(list.contains(JobId{7}));
  list.erase_at(0);
  EXPECT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0], JobId{9});
}

TEST(SpeedCurve, LeavesOutSizesThatAreNoFaster) {
  SpeedCurve curve;
  EXPECT_TRUE(curve.add(1, 1.0));
  EXPECT_TRUE(curve.add(2, 1.5));
  EXPECT_FALSE(curve.add(3, 1.5));
  EXPECT_TRUE(curve.add(4, 2.0));
  EXPECT_EQ(curve.gpus, (std::vector<std::int32_t>{1, 2, 4}));
  EXPECT_EQ(curve.sizes_within(0), 0U);
  EXPECT_EQ(curve.sizes_within(3), 2U) << "1 and 2";
  EXPECT_EQ(curve.first_reaching(1.2), 1U);
  EXPECT_EQ(curve.first_reaching(9), 2U) << "the fastest if none is as fast";
}

TEST(JobTimers, EachJobHasOneMomentAndTheEarliestComeFirst) {
  const auto at = [](int seconds) { return Time{std::chrono::seconds{seconds}}; };
  JobTimers timers;
  EXPECT_EQ(timers.next(), kNever);
  timers.set(JobId{3}, at(5));
  timers.set(JobId{1}, at(5));
  timers.set(JobId{2}, at(9));
  timers.set(JobId{2}, at(2));  // replaces the 9
  EXPECT_EQ(timers.due(at(5)), (std::vector<JobId>{JobId{2}, JobId{1}, JobId{3}}));
  EXPECT_EQ(timers.next(), at(2));
  EXPECT_EQ(timers.first(), JobId{2});
  EXPECT_EQ(timers.next_after(at(2)), at(5));
  EXPECT_EQ(timers.next_after(at(5)), kNever);
  timers.drop(JobId{2});
  timers.drop(JobId{2});    // none is set any more
  timers.drop(JobId{900});  // nor ever was
  EXPECT_FALSE(timers.is_set(JobId{2}));
  EXPECT_TRUE(timers.due(at(4)).empty());
}

}  // namespace
}  // namespace berth::test::kit_tests
