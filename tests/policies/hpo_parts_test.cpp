// Studies without an engine: ASHA's tables, deadlines, GPUs among trials, the debug pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "policies/hpo/rules.h"
#include "policies/hpo/study.h"

namespace berth::hpo {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Rungs, RiseToTheWholeTraining) {
  const Rungs nine{1, 3, 9};
  ASSERT_EQ(nine.size(), 3U);
  EXPECT_THAT((std::array{nine.cost(0), nine.cost(1), nine.cost(2)}), ElementsAre(1, 2, 6));
  const Rungs seventeen{1, 3, 17};  // 1, 3, 9 and the end
  ASSERT_EQ(seventeen.size(), 4U);
  EXPECT_EQ(seventeen.epochs(3), 17);
  EXPECT_EQ((Rungs{5, 3, 4}).size(), 1U);  // shorter than the first rung: it just runs
}

constexpr std::array<std::array<double, 3>, 9> kLosses{{{.9, .7, .5},
                                                        {.8, .75, .7},
                                                        {.5, .4, .35},
                                                        {.95, .9, .85},
                                                        {.6, .3, .2},
                                                        {.85, .8, .75},
                                                        {.7, .6, .5},
                                                        {.4, .38, .36},
                                                        {.99, .9, .8}}};

/// One worker: (trial, rung) in the order in which it trains them.
std::vector<std::pair<int, int>> one_worker(Study& study, double& epochs) {
  std::vector<std::pair<int, int>> order;
  while (const auto next = study.next({})) {
    study.start(*next);
    order.emplace_back(next->trial, next->rung);
    epochs += study.rungs().cost(next->rung);
    static_cast<void>(study.reach(next->trial, kLosses[next->trial][next->rung]));
  }
  return order;
}

TEST(Asha, WorkedExample) {
  Study study{{.first = 1, .eta = 3, .whole = 9}};
  for (std::size_t i = 0; i < kLosses.size(); ++i) static_cast<void>(study.add());
  double epochs = 0;
  const std::vector<std::pair<int, int>> expected{{0, 0}, {1, 0}, {2, 0}, {2, 1}, {3, 0},
                                                  {4, 0}, {5, 0}, {4, 1}, {6, 0}, {7, 0},
                                                  {7, 1}, {4, 2}, {8, 0}};
  EXPECT_EQ(one_worker(study, epochs), expected);
  EXPECT_EQ(epochs, 21);  // against 81 for nine whole trainings
  EXPECT_EQ(study.winner(), 4U);
  EXPECT_TRUE(study.is_settled({}));
}

// Against the definition: sort all results, take the top floor(n / eta), the best not promoted.
TEST(Asha, EqualsThePlainRule) {
  Rng rng{5};
  for (int round = 0; round < 200; ++round) {
    const double eta = 2 + static_cast<double>(rng.below(3));
    Asha asha{3, eta};
    std::array<std::vector<std::pair<double, TrialId>>, 3> results;
    std::array<std::vector<TrialId>, 3> promoted;
    const auto plain = [&]() -> std::optional<Promotion> {
      for (std::size_t rung = 2; rung-- > 0;) {
        auto sorted = results[rung];
        std::ranges::sort(sorted);
        const auto top = static_cast<std::size_t>(static_cast<double>(sorted.size()) / eta);
        for (std::size_t i = 0; i < top; ++i) {
          if (std::ranges::find(promoted[rung], sorted[i].second) == promoted[rung].end())
            return Promotion{sorted[i].second, rung + 1};
        }
      }
      return std::nullopt;
    };
    for (TrialId trial = 0; trial < 40; ++trial) {
      const auto add = [&](TrialId id, std::size_t rung) {
        const double loss = static_cast<double>(rng.below(10));  // many ties
        results[rung].emplace_back(loss, id);
        static_cast<void>(asha.report(id, rung, loss));
      };
      add(trial, 0);
      while (rng.below(3) != 0) {
        const auto next = asha.next(2);
        ASSERT_EQ(next, plain());
        if (!next) break;
        asha.promote(*next);
        promoted[next->rung - 1].push_back(next->trial);
        add(next->trial, next->rung);
      }
    }
  }
}

TEST(Asha, ATrialThatDivergesIsStopped) {
  Study study{{.first = 1, .eta = 2, .whole = 4}};
  for (int i = 0; i < 2; ++i) {
    const TrialId trial = study.add();
    study.start({trial, 0});
  }
  EXPECT_EQ(study.reach(0, std::numeric_limits<double>::quiet_NaN()), Study::Verdict::Stop);
  EXPECT_EQ(study.reach(1, 0.5), Study::Verdict::Wait);
  study.end(0);
  // One result: nobody is in the best half of one. The leader goes on all the same, because
  // otherwise a small study would end without a trained model.
  EXPECT_EQ(study.next({}), (Promotion{1, 1}));
  EXPECT_EQ(study.next({.may_explore = true, .highest_rung = 0}), std::nullopt);
}

TEST(Study, LosersAreStoppedAtOnceIfAskedFor) {
  Study study{{.first = 1, .eta = 2, .whole = 4, .losers = Losers::Stop}};
  for (int i = 0; i < 4; ++i) study.start({study.add(), 0});
  EXPECT_EQ(study.reach(0, .5), Study::Verdict::GoOn);  // alone: cannot be judged
  EXPECT_EQ(study.reach(1, .6), Study::Verdict::Stop);  // worse half of two
  EXPECT_EQ(study.reach(2, .4), Study::Verdict::GoOn);  // best of three
  EXPECT_EQ(study.target(2), 1U);
  EXPECT_EQ(study.reach(3, .45), Study::Verdict::GoOn);  // second of four
}

TEST(Study, SynchronousRungsWaitForAllAndGoOnTogether) {
  Study study{{.first = 1, .eta = 2, .whole = 4, .halving = Halving::Synchronous}};
  for (int i = 0; i < 4; ++i) static_cast<void>(study.add());
  for (TrialId i = 0; i < 4; ++i) study.start({i, 0});
  for (TrialId i = 0; i < 3; ++i) static_cast<void>(study.reach(i, 0.1 * (4 - i)));
  EXPECT_EQ(study.next({}), std::nullopt);  // the fourth is still on its way
  static_cast<void>(study.reach(3, 0.9));
  const auto next = study.next({});
  ASSERT_EQ(next, (Promotion{2, 1}));
  EXPECT_THAT(study.gang_of(*next), ElementsAre(2, 1));
}

TEST(Study, NewsFirstThenPromotionsThenRestarts) {
  Study study{{.first = 1, .eta = 2, .whole = 4}};
  for (int i = 0; i < 3; ++i) static_cast<void>(study.add());
  EXPECT_EQ(study.urgency({0, 0}), 0);
  study.start({0, 0});
  study.start({1, 0});
  study.interrupt(1);
  EXPECT_EQ(study.urgency({1, 0}), 2);
  EXPECT_EQ(study.next({}), (Promotion{2, 0}));  // the interrupted one comes last
  static_cast<void>(study.reach(0, .1));
  study.start({2, 0});
  static_cast<void>(study.reach(2, .2));
  EXPECT_EQ(study.next({}), (Promotion{0, 1}));
  EXPECT_EQ(study.urgency({0, 1}), 1);
}

TEST(Study, ADeadlineShrinksExploration) {
  Study study{{.first = 1, .eta = 3, .whole = 9}};
  for (std::size_t i = 0; i < 4; ++i) static_cast<void>(study.add());
  for (TrialId i = 0; i < 3; ++i) {
    study.start({i, 0});
    static_cast<void>(study.reach(i, kLosses[i][0]));
  }
  EXPECT_EQ(study.next({.may_explore = false, .highest_rung = 2}), (Promotion{2, 1}));
  EXPECT_EQ(study.next({.may_explore = false, .highest_rung = 0}), std::nullopt);
  EXPECT_TRUE(study.is_settled({.may_explore = false, .highest_rung = 0}));
  EXPECT_THAT(study.waiting(), ElementsAre(0, 1, 2, 3));
}

// 20 s an epoch; rung 1 at 3 epochs.
TEST(Deadline, LeavesNoTrialHalfWay) {
  EXPECT_TRUE(may_explore(60, 20, 3));
  EXPECT_FALSE(may_explore(59, 20, 3));
  EXPECT_TRUE(may_promote(40, 20, 2));
  EXPECT_FALSE(may_promote(39, 20, 2));
}

TEST(Deadline, TheLeaderGrowsWhileItGains) {
  EXPECT_TRUE(should_grow(1, 1.11));
  EXPECT_FALSE(should_grow(1, 1.1));
}

TEST(TrialShares, WorkedExamples) {
  const std::vector<double> falling{4, 2, 1, 1};
  EXPECT_THAT(trial_shares(falling, 8), ElementsAre(4, 2, 1, 1));
  EXPECT_THAT(trial_shares(falling, 2), ElementsAre(1, .5, .25, .25));
  EXPECT_THAT(trial_shares(std::vector<double>{8, 2, 1, 1}, 3), ElementsAre(1, 1, .5, .5));
  EXPECT_THAT(trial_shares({}, 3), IsEmpty());
}

TEST(TrialShares, UseAllGpusAndNobodyHasMoreThanOneInParts) {
  Rng rng{8};
  for (int round = 0; round < 300; ++round) {
    std::vector<double> work;
    for (std::uint64_t i = 0; i < 1 + rng.below(10); ++i) work.push_back(0.1 + 10 * rng.uniform());
    const auto gpus = static_cast<std::int32_t>(1 + rng.below(12));
    const auto shares = trial_shares(work, gpus);
    double sum = 0;
    for (const double share : shares) {
      ASSERT_GT(share, 0);
      if (std::ssize(work) > gpus) {
        ASSERT_LE(share, 1);
      }
      sum += share;
    }
    ASSERT_NEAR(sum, gpus, 1e-9);
  }
}

TEST(DebugPool, SizeAndRule) {
  const DebugPoolSize size = debug_pool_size(150);
  EXPECT_EQ(size.first, 8U);
  EXPECT_EQ(size.least, 3U);
  EXPECT_EQ(size.most, 15U);
  EXPECT_EQ(debug_pool_change(size, 8, 11, false), PoolChange::Grow);
  EXPECT_EQ(debug_pool_change(size, 15, 11, false), PoolChange::Stay);
  EXPECT_EQ(debug_pool_change(size, 8, 10, true), PoolChange::Stay);
  EXPECT_EQ(debug_pool_change(size, 8, 2, true), PoolChange::Shrink);
  EXPECT_EQ(debug_pool_change(size, 8, 2, false), PoolChange::Stay);
  EXPECT_EQ(debug_pool_change(size, 3, 0, true), PoolChange::Stay);
  EXPECT_EQ(debug_pool_size(1).first, 1U);
}

}  // namespace
}  // namespace berth::hpo
