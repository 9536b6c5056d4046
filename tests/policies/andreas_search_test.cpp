// ANDREAS without an engine: the worked example of its specification, its properties against brute
// force, and the quality of greedy, randomised greedy and local search on random instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "policies/andreas/greedy.h"
#include "policies/andreas/search.h"

namespace berth::andreas {
namespace {

constexpr std::uint32_t kFast = 0;  // N1 of the example: speed 2, 0.50 / 0.80 EUR/h
constexpr std::uint32_t kSlow = 1;  // N2: speed 1, 0.20 / 0.30 EUR/h

std::vector<NodeType> two_types() {
  return {{.pool = 0, .gpus = 2, .idle_rate = 0.2, .gpu_rate = 0.3},
          {.pool = 1, .gpus = 2, .idle_rate = 0.1, .gpu_rate = 0.1}};
}

/// One unit of work is an hour on one slow GPU; two give 1.8 times the speed.
const ChoiceList& both_types() {
  static const ChoiceList kList{{{.type = kFast, .gpus = 1, .hours = 0.5},
                                 {.type = kFast, .gpus = 2, .hours = 0.5 / 1.8},
                                 {.type = kSlow, .gpus = 1, .hours = 1},
                                 {.type = kSlow, .gpus = 2, .hours = 1 / 1.8}},
                                two_types()};
  return kList;
}

struct Wanted {
  double work = 1;
  double due = kNoDueDate;
  double weight = 1;
};

/// On the two nodes of the example; jobs are numbered from 0 as given.
Instance instance_of(const std::vector<Wanted>& jobs) {
  Instance instance;
  instance.types = two_types();
  instance.nodes = {{.type = kFast}, {.type = kSlow}};
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    instance.jobs.push_back({.id = i,
                             .choices = &both_types(),
                             .work = jobs[i].work,
                             .due = jobs[i].due,
                             .weight = jobs[i].weight});
  }
  instance.prepare();
  return instance;
}

Instance worked_example() { return instance_of({{4, 2.5}, {2, 1}, {1, 10}}); }

std::uint32_t at(const Instance& instance, std::uint32_t id) {
  return static_cast<std::uint32_t>(std::ranges::find(instance.jobs, id, &Job::id) -
                                    instance.jobs.begin());
}

struct Place {
  std::uint32_t type = kNone;  // kNone: postponed
  std::int32_t gpus = 0;
  friend bool operator==(const Place&, const Place&) = default;
};
constexpr Place kPostponed{};

std::vector<Place> places(const Instance& instance, const Solution& solution) {
  std::vector<Place> places(instance.jobs.size());
  for (std::size_t i = 0; i < instance.jobs.size(); ++i) {
    const Job& job = instance.jobs[i];
    if (solution.spots[i].choice == kNone) continue;
    const Choice& choice = (*job.choices)[solution.spots[i].choice];
    places[job.id] = {choice.type, choice.gpus};
  }
  return places;
}

Solution greedy(const Instance& instance) {
  Layout layout{instance};
  build(layout, Movers::Everybody, nullptr);
  return layout.solution();
}

Solution randomised(const Instance& instance, std::int64_t iterations, std::uint64_t seed = 1) {
  Layout layout{instance};
  return search(layout, {.iterations = iterations, .local = {.sweeps = 0}, .seed = seed});
}

Solution improved(const Instance& instance, std::int64_t iterations, bool may_postpone) {
  Layout layout{instance};
  return search(layout,
                {.iterations = iterations,
                 .local = {.sweeps = 100, .budget = 1'000'000, .may_postpone = may_postpone},
                 .seed = 1});
}

/// Every assignment of jobs to single nodes.
template <class Visit>
void each_assignment(Layout& layout, std::uint32_t job, Visit&& visit) {
  const Instance& instance = layout.instance();
  if (job == instance.jobs.size()) {
    visit(layout);
    return;
  }
  each_assignment(layout, job + 1, visit);
  const auto list = instance.jobs[job].choices->by_cost();
  for (std::uint32_t choice = 0; choice < list.size(); ++choice) {
    for (std::uint32_t node = 0; node < instance.nodes.size(); ++node) {
      if (instance.nodes[node].type != list[choice].type ||
          layout.free_on(node) < list[choice].gpus)
        continue;
      layout.place(job, choice, node);
      each_assignment(layout, job + 1, visit);
      layout.remove(job);
    }
  }
}

Solution optimum(const Instance& instance) {
  Layout layout{instance};
  std::optional<Solution> best;
  each_assignment(layout, 0, [&](const Layout& now) {
    if (!best || now.score() < best->score) best = now.solution();
  });
  return *best;
}

/// The cost of a solution by its definition, with pi(n, k(t)) integrated piece by piece.
double cost_by_hand(const Instance& instance, const Solution& solution) {
  double cost = 0;
  std::vector<std::vector<std::pair<double, std::int32_t>>> ends(instance.nodes.size());
  for (std::size_t i = 0; i < instance.jobs.size(); ++i) {
    const Job& job = instance.jobs[i];
    const Spot& spot = solution.spots[i];
    if (spot.choice == kNone) {
      const double worst = instance.period + job.hours(job.choices->slowest()) - job.due;
      double later = 1e18;
      for (const Choice& choice : job.choices->by_cost())
        later = std::min(later, job.hours(choice) * instance.types[choice.type].rate(choice.gpus));
      cost += instance.rho * job.weight * std::max(0.0, worst) + later;
      continue;
    }
    const Choice& choice = (*job.choices)[spot.choice];
    cost += job.weight * std::max(0.0, job.hours(choice) - job.due);
    ends[spot.node].push_back({job.hours(choice), choice.gpus});
  }
  for (std::size_t node = 0; node < ends.size(); ++node) {
    std::ranges::sort(ends[node]);
    std::int32_t busy = 0;
    for (const auto& [end, gpus] : ends[node]) busy += gpus;
    double from = 0;
    for (const auto& [end, gpus] : ends[node]) {
      cost += (end - from) * instance.types[instance.nodes[node].type].rate(busy);
      busy -= gpus;
      from = end;
    }
  }
  return cost;
}

TEST(AndreasExample, TimesCostsAndPressuresAreThoseOfTheTable) {
  const Instance instance = worked_example();
  const Job& first = instance.jobs[at(instance, 0)];
  const auto row = [&](std::uint32_t type, std::int32_t gpus) {
    const Choice& choice = both_types()[both_types().find(type, gpus)];
    return std::pair{first.hours(choice), first.cost(choice)};
  };
  EXPECT_DOUBLE_EQ(row(kFast, 1).first, 2);
  EXPECT_DOUBLE_EQ(row(kFast, 1).second, 1);
  EXPECT_NEAR(row(kFast, 2).first, 10.0 / 9, 1e-12);
  EXPECT_NEAR(row(kFast, 2).second, 8.0 / 9, 1e-12);
  EXPECT_DOUBLE_EQ(row(kSlow, 1).first, 4);
  EXPECT_DOUBLE_EQ(row(kSlow, 1).second, 0.8);
  EXPECT_NEAR(row(kSlow, 2).first, 20.0 / 9, 1e-12);
  EXPECT_NEAR(row(kSlow, 2).second, 2.0 / 3, 1e-12);
  EXPECT_NEAR(first.pressure, -25.0 / 18, 1e-12);
  EXPECT_NEAR(instance.jobs[at(instance, 1)].pressure, -4.0 / 9, 1e-12);
  EXPECT_NEAR(instance.jobs[at(instance, 2)].pressure, -175.0 / 18, 1e-12);
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

/// The random instances of the specification: 2 to 4 jobs, work and due date 1 to 6.
Instance random_instance(Rng& rng) {
  std::vector<Wanted> jobs(2 + rng.below(3));
  for (Wanted& job : jobs) {
    job.work = 1 + static_cast<double>(rng.below(6));
    job.due = 1 + static_cast<double>(rng.below(6));
  }
  return instance_of(jobs);
}

TEST(AndreasSearch, NeverLosesToTheGreedyNorToItselfAndCountsAsByHand) {
  Rng rng{11};
  for (int trial = 0; trial < 100; ++trial) {
    const Instance instance = random_instance(rng);
    const Solution first = greedy(instance);
    const Solution drawn = randomised(instance, 50);
    const Solution final = improved(instance, 50, false);
    ASSERT_LE(drawn.score, first.score);
    ASSERT_LE(final.score, drawn.score);
    for (const Solution* solution : {&first, &drawn, &final})
      ASSERT_NEAR(cost_by_hand(instance, *solution), solution->score.cost, 1e-7);
  }
}

TEST(AndreasSearch, RespectsTheGpusOfEveryNodeAndLeavesRoomToNobodyWhoFits) {
  Rng rng{12};
  for (int trial = 0; trial < 200; ++trial) {
    const Instance instance = random_instance(rng);
    for (const Solution& solution : {greedy(instance), randomised(instance, 20)}) {
      std::vector<std::int32_t> used(instance.nodes.size());
      std::size_t waiting = 0;
      for (std::size_t i = 0; i < solution.spots.size(); ++i) {
        const Spot& spot = solution.spots[i];
        if (spot.choice == kNone) {
          ++waiting;
        } else {
          used[spot.node] += (*instance.jobs[i].choices)[spot.choice].gpus;
        }
      }
      for (std::size_t node = 0; node < used.size(); ++node) {
        ASSERT_LE(used[node], instance.types[instance.nodes[node].type].gpus);
        if (waiting > 0) {
          ASSERT_EQ(used[node], 2) << "every job could take a single GPU";
        }
      }
      ASSERT_EQ(solution.score.postponed, waiting);
    }
  }
}

TEST(AndreasSearch, GivesTheSameOnAnyNumberOfThreads) {
  Rng rng{13};
  constexpr std::int64_t kIterations = 120;
  for (int trial = 0; trial < 5; ++trial) {
    const Instance instance = random_instance(rng);
    const Solution alone = randomised(instance, kIterations, 7);
    for (const std::int64_t threads : {2, 3}) {
      std::vector<std::vector<Solution>> found(static_cast<std::size_t>(threads));
      std::vector<std::thread> workers;
      for (std::int64_t t = 0; t < threads; ++t) {
        workers.emplace_back([&, t] {
          Layout layout{instance};
          for (std::int64_t i = t; i < kIterations; i += threads) {
            layout.clear();
            construct(layout, 7, i);
            found[static_cast<std::size_t>(t)].push_back(layout.solution());
          }
        });
      }
      for (std::thread& worker : workers) worker.join();
      const Solution* best = nullptr;
      for (std::int64_t i = 0; i < kIterations; ++i) {
        const Solution& one =
            found[static_cast<std::size_t>(i % threads)][static_cast<std::size_t>(i / threads)];
        if (best == nullptr || one.score < best->score) best = &one;
      }
      EXPECT_EQ(best->score, alone.score);
      EXPECT_EQ(best->spots, alone.spots);
    }
  }
}

double penalised_lateness(const Instance& instance, const Solution& solution, std::uint32_t id) {
  const std::uint32_t i = at(instance, id);
  const Job& job = instance.jobs[i];
  if (solution.spots[i].choice == kNone) {
    return instance.rho *
           std::max(0.0, instance.period + job.hours(job.choices->slowest()) - job.due);
  }
  return std::max(0.0, job.hours((*job.choices)[solution.spots[i].choice]) - job.due);
}

TEST(AndreasSearch, ALargerWeightNeverMakesAJobLaterInTheOptimum) {
  Rng rng{14};
  for (int trial = 0; trial < 150; ++trial) {
    Instance instance = random_instance(rng);
    const double before = penalised_lateness(instance, optimum(instance), 0);
    instance.jobs[at(instance, 0)].weight = 1.5 + static_cast<double>(rng.below(10));
    instance.prepare();
    ASSERT_LE(penalised_lateness(instance, optimum(instance), 0), before + 1e-9);
  }
}

TEST(AndreasSearch, FindsTheOptimumAsOftenAsTheSpecificationExpects) {
  Rng rng{15};
  constexpr int kTrials = 300;
  int by_greedy = 0, by_draws = 0, by_moves = 0, by_waiting = 0;
  double excess = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Instance instance = random_instance(rng);
    const double best = optimum(instance).score.cost + 1e-7;
    const double moves = improved(instance, 300, false).score.cost;
    by_greedy += greedy(instance).score.cost <= best ? 1 : 0;
    by_draws += randomised(instance, 300).score.cost <= best ? 1 : 0;
    by_moves += moves <= best ? 1 : 0;
    by_waiting += improved(instance, 300, true).score.cost <= best ? 1 : 0;
    excess += moves / best;
  }
  RecordProperty("greedy", by_greedy);
  RecordProperty("randomised", by_draws);
  RecordProperty("local_search", by_moves);
  RecordProperty("with_waiting", by_waiting);
  EXPECT_NEAR(by_greedy, 0.31 * kTrials, 0.06 * kTrials);
  EXPECT_GE(by_draws, 0.70 * kTrials);
  EXPECT_GE(by_moves, by_draws);
  EXPECT_GE(by_waiting, 0.90 * kTrials);
  EXPECT_LT(excess / kTrials, 1.05);
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
