// ANDREAS without an engine: the worked example of its specification, and its parts one by one.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "policies/andreas_instances.h"

namespace berth::andreas {
namespace {

Instance worked_example() { return instance_of({{4, 2.5}, {2, 1}, {1, 10}}); }

TEST(AndreasExample, TimesCostsAndPressuresAreThoseOfTheTable) {
  const Instance instance = worked_example();
  struct Row {
    double hours, cost, late;
  };
  struct Line {
    Row fast, fast_two, slow, slow_two;
    double pressure;
  };
  const std::vector<Line> table{
      {{2, 1, 0}, {10.0 / 9, 8.0 / 9, 0}, {4, 0.8, 1.5}, {20.0 / 9, 2.0 / 3, 0}, -25.0 / 18},
      {{1, 0.5, 0}, {5.0 / 9, 4.0 / 9, 0}, {2, 0.4, 1}, {10.0 / 9, 1.0 / 3, 1.0 / 9}, -4.0 / 9},
      {{0.5, 0.25, 0}, {5.0 / 18, 2.0 / 9, 0}, {1, 0.2, 0}, {5.0 / 9, 1.0 / 6, 0}, -175.0 / 18}};
  for (std::uint32_t id = 0; id < 3; ++id) {
    const Job& job = instance.jobs[at(instance, id)];
    const auto expect_row = [&](std::uint32_t type, std::int32_t gpus, const Row& row) {
      const Choice& choice = both_types()[both_types().find(type, gpus)];
      EXPECT_NEAR(job.hours(choice), row.hours, 1e-12) << "J" << id + 1;
      EXPECT_NEAR(job.cost(choice), row.cost, 1e-12) << "J" << id + 1;
      EXPECT_NEAR(std::max(0.0, job.hours(choice) - job.due), row.late, 1e-12) << "J" << id + 1;
      EXPECT_EQ(job.is_on_time(choice), row.late == 0) << "J" << id + 1;
    };
    expect_row(kFast, 1, table[id].fast);
    expect_row(kFast, 2, table[id].fast_two);
    expect_row(kSlow, 1, table[id].slow);
    expect_row(kSlow, 2, table[id].slow_two);
    EXPECT_NEAR(job.pressure, table[id].pressure, 1e-12);
  }
  EXPECT_EQ(at(instance, 1), 0U) << "the most pressing first";
  EXPECT_EQ(at(instance, 0), 1U);
}

TEST(AndreasExample, TheGreedyFindsTheOptimumByPostponingTheLaxJob) {
  const Instance instance = worked_example();
  const Solution solution = greedy(instance);
  EXPECT_EQ(places(instance, solution), (std::vector<Place>{{kSlow, 2}, {kFast, 2}, kPostponed}));
  EXPECT_NEAR(solution.score.cost, 23.0 / 18, 1e-8);
  EXPECT_NEAR(optimum(instance).score.cost, 23.0 / 18, 1e-8);
}

TEST(AndreasExample, TheNextBestAndTheNamedOthersCostWhatTheSpecificationSays) {
  const Instance instance = worked_example();
  Layout layout{instance};
  std::set<double> costs;
  std::map<std::vector<std::pair<std::uint32_t, std::int32_t>>, double> by_places;
  each_assignment(layout, 0, [&](const Layout& now) {
    costs.insert(now.score().cost);
    std::vector<std::pair<std::uint32_t, std::int32_t>> key;
    for (const Place& place : places(instance, now.solution()))
      key.push_back({place.type, place.gpus});
    by_places[key] = now.score().cost;
  });
  auto next = costs.begin();
  EXPECT_NEAR(*next++, 23.0 / 18, 1e-8);
  EXPECT_NEAR(*next++, 79.0 / 60, 1e-8);
  EXPECT_NEAR(*next++, 4.0 / 3, 1e-8);
  const std::pair<std::uint32_t, std::int32_t> none{kNone, 0};
  const auto cost = [&](auto a, auto b, auto c) { return by_places.at({a, b, c}); };
  using Key = std::pair<std::uint32_t, std::int32_t>;
  EXPECT_NEAR(cost(Key{kSlow, 2}, Key{kFast, 1}, Key{kFast, 1}), 79.0 / 60, 1e-8);
  EXPECT_NEAR(cost(Key{kSlow, 2}, Key{kFast, 1}, none), 4.0 / 3, 1e-8);
  EXPECT_NEAR(cost(Key{kFast, 1}, Key{kFast, 1}, none), 22.0 / 15, 1e-8);
  EXPECT_NEAR(cost(Key{kFast, 1}, Key{kFast, 1}, Key{kSlow, 2}), 22.0 / 15, 1e-8);
  EXPECT_NEAR(cost(Key{kFast, 2}, Key{kSlow, 2}, none), 3.0 / 2, 1e-8)
      << "first come, first served";
}

/// At t = 5/9: the second job is done, the first has 3 h of work left and runs on both slow GPUs.
Instance rescheduling() {
  Instance instance = instance_of({{3, 2.5 - 5.0 / 9}, {1, 10 - 5.0 / 9}});
  Job& first = instance.jobs[at(instance, 0)];
  first.kept = both_types().find(kSlow, 2);
  first.home = {{.node = 1, .gpus = 2}};
  instance.prepare();
  return instance;
}

TEST(AndreasExample, AtTheNextPointTheLaxJobStartsUnlessItMayWaitForACheaperNode) {
  const Instance instance = rescheduling();
  const Solution at_once = greedy(instance);
  EXPECT_EQ(places(instance, at_once), (std::vector<Place>{{kSlow, 2}, {kFast, 2}}));
  EXPECT_NEAR(at_once.score.cost, 13.0 / 18, 1e-8);
  EXPECT_NEAR(randomised(instance, 1000).score.cost, 13.0 / 18, 1e-8);
  EXPECT_NEAR(improved(instance, 1000, false).score.cost, 13.0 / 18, 1e-8);
  const Solution waits = improved(instance, 1000, true);
  EXPECT_EQ(places(instance, waits), (std::vector<Place>{{kSlow, 2}, kPostponed}));
  EXPECT_NEAR(waits.score.cost, 2.0 / 3, 1e-8);
  EXPECT_NEAR(optimum(instance).score.cost, 2.0 / 3, 1e-8);
}

TEST(AndreasGreedy, AJobThatIsLateAnywayTakesItsFastestChoice) {
  const Instance instance = instance_of({{4, -1}});
  EXPECT_EQ(places(instance, greedy(instance)), (std::vector<Place>{{kFast, 2}}));
}

TEST(AndreasGreedy, AJobWithoutDueDateComesLastAndTakesItsCheapestChoice) {
  const Instance instance = instance_of({{1, kNoDueDate, 0}, {1, 100}});
  EXPECT_EQ(at(instance, 0), 1U);
  const Instance alone = instance_of({{1, kNoDueDate, 0}});
  EXPECT_EQ(places(alone, greedy(alone)), (std::vector<Place>{{kSlow, 2}}));
}

TEST(AndreasInstance, EqualPressureGoesByWeightThenSubmissionThenId) {
  Instance instance = instance_of({{2, 4, 1}, {2, 4, 1}, {2, 4, 3}, {2, 4, 1}});
  for (Job& job : instance.jobs) job.submitted = job.id == 3 ? -2 : -1;
  instance.prepare();
  std::vector<std::uint32_t> order;
  for (const Job& job : instance.jobs) order.push_back(job.id);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{2, 3, 0, 1}));
}

TEST(AndreasScore, OfEqualCostsTheOneThatPostponesFewerJobs) {
  EXPECT_LT((Score{.cost = 1, .postponed = 1}), (Score{.cost = 1, .postponed = 2}));
  EXPECT_LT((Score{.cost = 1, .postponed = 2}), (Score{.cost = 1.1, .postponed = 0}));
}

TEST(AndreasGreedy, TakesLeftoverGpusWhereThatIsCheaper) {
  // One GPU of a node that is on anyway costs less for a shorter time: 2 x 0.3 / 1.8 < 0.5.
  Instance instance = instance_of({{2, 10}});
  Layout layout{instance};
  layout.place(0, both_types().find(kFast, 1), 0);
  EXPECT_NEAR(layout.cost(), 0.5, 1e-9);
  take_leftovers(layout);
  EXPECT_EQ(layout.choice_of(0).gpus, 2);
  EXPECT_NEAR(layout.cost(), 4.0 / 9, 1e-9);
}

TEST(AndreasChoices, MoreGpusThatAreNotFasterAreLeftOutAndEqualCostsMeanFewer) {
  const ChoiceList list{{{.type = 0, .gpus = 1, .hours = 1},
                         {.type = 0, .gpus = 2, .hours = 1.2},
                         {.type = 1, .gpus = 2, .hours = 1},
                         {.type = 1, .gpus = 1, .hours = 1.5}},
                        two_types()};
  EXPECT_EQ(list.find(0, 2), kNone);
  ASSERT_EQ(list.by_cost().size(), 3U);
  EXPECT_EQ(list[0].gpus, 1) << "0.3 EUR either way";
  EXPECT_EQ(list[0].type, 1U);
  const std::vector<NodeType> alike(2, two_types().front());
  const ChoiceList tie{{{.type = 1, .gpus = 1, .hours = 1}, {.type = 0, .gpus = 1, .hours = 1}},
                       alike};
  EXPECT_EQ(tie[0].type, 0U) << "then the first type";
}

TEST(AndreasInstance, WaitingWithoutDueDateCostsMoreTheLongerItLasts) {
  Instance instance = instance_of({{1, kNoDueDate, 0}});
  EXPECT_NEAR(instance.jobs[0].postponed, 1.0 / 6, 1e-9) << "just submitted: its later energy";
  instance.jobs[0].submitted = -3;
  instance.prepare();
  // rho 100 x (0.01 x 3 h) x (3 h so far + 1 h to the next point + 1 h at worst) + 1/6
  EXPECT_NEAR(instance.jobs[0].postponed, 100 * 0.03 * 5 + 1.0 / 6, 1e-9);
}

TEST(AndreasInstance, MovingARunningJobCostsARestart) {
  Instance instance = instance_of({{1, 100}});
  Job& job = instance.jobs[0];
  job.kept = both_types().find(kFast, 2);  // 2/9 EUR; the cheapest choice costs 1/6
  job.home = {{.node = 0, .gpus = 2}};
  instance.prepare();
  EXPECT_EQ(places(instance, greedy(instance)), (std::vector<Place>{{kSlow, 2}}));
  instance.restart = 0.5;  // x 0.3 EUR/h: more than the 1/18 it saves
  instance.prepare();
  const Solution stays = improved(instance, 100, true);
  EXPECT_EQ(places(instance, stays), (std::vector<Place>{{kFast, 2}}));
  EXPECT_NEAR(stays.score.cost, 2.0 / 9, 1e-8);
}

TEST(AndreasInstance, ANodeThatBootsCostsItsIdleRateAndDelaysItsJobs) {
  Instance instance = instance_of({{1, 0.4}});
  instance.boot = 0.5;
  instance.nodes[0].ready = 0.5;
  instance.prepare();
  Layout layout{instance};
  layout.place(0, both_types().find(kFast, 2), 0);
  // Ends at 0.5 + 5/18; idle rate until then, 2 x 0.3 EUR/h for 5/18 h, 0.3778 h late at 1 EUR/h.
  EXPECT_NEAR(layout.cost(), 0.2 * (0.5 + 5.0 / 18) + 0.6 * 5 / 18 + (0.1 + 5.0 / 18), 1e-9);
}

/// Ten nodes of four GPUs and one of two, of one pool; job 0 is a gang.
Instance with_gang(const ChoiceList& small, const ChoiceList& gang, std::uint32_t others) {
  Instance instance;
  instance.types = {{.pool = 0, .gpus = 4, .idle_rate = 0.1, .gpu_rate = 0.1},
                    {.pool = 0, .gpus = 2, .idle_rate = 0.1, .gpu_rate = 0.1}};
  for (int i = 0; i < 10; ++i) instance.nodes.push_back({.type = 0});
  instance.nodes.push_back({.type = 1});
  instance.jobs.push_back({.id = 0, .choices = &gang, .work = 1, .due = 2, .weight = 1});
  for (std::uint32_t i = 1; i <= others; ++i)
    instance.jobs.push_back({.id = i, .choices = &small, .work = 1, .due = 50, .weight = 1});
  instance.prepare();
  return instance;
}

TEST(AndreasGang, TakesWholeNodesOfItsPoolAndLeavesTheRestToOthers) {
  const std::vector<NodeType> types{{.pool = 0, .gpus = 4, .idle_rate = 0.1, .gpu_rate = 0.1},
                                    {.pool = 0, .gpus = 2, .idle_rate = 0.1, .gpu_rate = 0.1}};
  const ChoiceList small{{{.type = 0, .gpus = 1, .hours = 1}}, types};
  for (const std::int32_t gpus : {10, 42}) {
    const ChoiceList gang{{{.type = 0, .gpus = gpus, .hours = 1, .per_node = 4}}, types};
    const Instance instance = with_gang(small, gang, 40);
    const Solution solution = improved(instance, 10, false);
    ASSERT_EQ(solution.gangs.size(), 1U);
    std::int32_t sum = 0;
    for (const Share& share : solution.gangs[0].second) sum += share.gpus;
    EXPECT_EQ(sum, gpus);
    EXPECT_EQ(solution.gangs[0].second.size(), gpus == 10 ? 3U : 11U);
    // 10 x 4 GPUs less the gang; the small ones do not run on the other type.
    EXPECT_EQ(solution.score.postponed, gpus == 10 ? 10U : 40U);
  }
}

}  // namespace
}  // namespace berth::andreas
