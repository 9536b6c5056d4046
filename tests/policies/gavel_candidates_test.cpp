// Turns from fractions: the worked example round by round, ties, gangs, filling.
#include <gtest/gtest.h>

#include <array>

#include "policies/gavel/candidates.h"

namespace berth::gavel {
namespace {

using Table = std::vector<std::vector<double>>;

Candidates candidates_of(const Table& shares, const std::vector<std::int32_t>& gpus = {}) {
  Candidates candidates{shares[0].size()};
  for (std::uint32_t i = 0; i < shares.size(); ++i) {
    const std::uint32_t at =
        candidates.add({.job = JobId{i}, .partner = {}, .gpus = gpus.empty() ? 1 : gpus[i]});
    for (std::uint32_t type = 0; type < shares[i].size(); ++type) {
      candidates.claim(at, PoolId{type}).share = shares[i][type];
      candidates.claim(at, PoolId{type}).rate = 1;
    }
  }
  return candidates;
}

constexpr double kRound = 360;

std::vector<Pick> play(Candidates& candidates, std::span<const std::int64_t> free) {
  const std::vector<Pick> picks = candidates.choose(free);
  candidates.elapse(kRound);
  for (const Pick& pick : picks) candidates.receive(pick.candidate, pick.pool, kRound);
  return picks;
}

TEST(GavelCandidates, TheWorkedExampleStaysWithinOneRoundOfItsShares) {
  const Table shares{{5.0 / 11, 0}, {5.0 / 11, 1.0 / 11}, {1.0 / 11, 10.0 / 11}};
  Candidates candidates = candidates_of(shares);
  const std::array<std::int64_t, 2> free{1, 1};
  std::vector<std::pair<int, int>> rounds;
  Table received(3, std::vector<double>(2));
  for (int round = 0; round < 12; ++round) {
    std::pair<int, int> jobs{-1, -1};
    for (const Pick& pick : play(candidates, free)) {
      (pick.pool.value == 0 ? jobs.first : jobs.second) = static_cast<int>(pick.candidate);
      received[pick.candidate][pick.pool.value] += 1;
    }
    rounds.push_back(jobs);
  }
  const std::vector<std::pair<int, int>> expected{{0, 2}, {1, 2}, {2, 1}, {0, 2}, {1, 2}, {0, 2},
                                                  {1, 2}, {0, 2}, {1, 2}, {0, 2}, {1, 2}, {0, 2}};
  EXPECT_EQ(rounds, expected);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t type = 0; type < 2; ++type)
      EXPECT_LE(std::abs(received[i][type] - 12 * shares[i][type]), 1.0) << i << ' ' << type;
  }
}

TEST(GavelCandidates, WhoNeverRanGoesFirstAndMoreShareBeforeLess) {
  Candidates candidates = candidates_of({{0.3}, {0.5}, {0.2}});
  EXPECT_EQ(candidates.choose(std::array<std::int64_t, 1>{1}), (std::vector<Pick>{{1, PoolId{0}}}));
  candidates.receive(1, PoolId{0}, kRound);
  EXPECT_EQ(candidates.choose(std::array<std::int64_t, 1>{1}), (std::vector<Pick>{{0, PoolId{0}}}));
}

TEST(GavelCandidates, AGangThatDoesNotFitIsPassedOver) {
  Candidates candidates = candidates_of({{0.9}, {0.5}}, {4, 1});
  EXPECT_EQ(candidates.choose(std::array<std::int64_t, 1>{3}), (std::vector<Pick>{{1, PoolId{0}}}));
}

TEST(GavelCandidates, WhoIsOwedNothingFillsWhatIsLeftOnItsFastestType) {
  Candidates candidates = candidates_of({{1, 0}, {0, 0}});
  candidates.claim(1, PoolId{1}).rate = 3;
  const std::array<std::int64_t, 2> free{2, 2};
  EXPECT_EQ(candidates.choose(free), (std::vector<Pick>{{0, PoolId{0}}, {1, PoolId{1}}}));
  candidates.claim(1, PoolId{1}).may_fill = false;
  EXPECT_EQ(candidates.choose(free), (std::vector<Pick>{{0, PoolId{0}}, {1, PoolId{0}}}));
  candidates.claim(1, PoolId{0}).rate = 0;
  EXPECT_EQ(candidates.choose(free), (std::vector<Pick>{{0, PoolId{0}}}));
}

TEST(GavelCandidates, WhatIsOwedOutlivesNewShares) {
  Candidates candidates = candidates_of({{0.5}, {0.5}});
  const std::array<std::int64_t, 1> free{1};
  EXPECT_EQ(play(candidates, free)[0].candidate, 0U);
  candidates.restart(0);
  // by the counters alone it would be the first job's turn again
  EXPECT_EQ(play(candidates, free)[0].candidate, 1U);
}

TEST(GavelCandidates, APairTakesTheTurnsOfBoth) {
  Candidates candidates = candidates_of({{0}, {0}, {0}});
  const std::uint32_t pair = candidates.add({.job = JobId{0}, .partner = JobId{1}, .gpus = 1});
  candidates.claim(pair, PoolId{0}) = {.share = 1, .rate = 1};
  EXPECT_EQ(candidates.choose(std::array<std::int64_t, 1>{3}),
            (std::vector<Pick>{{pair, PoolId{0}}, {2, PoolId{0}}}));
  candidates.remove_pairs();
  EXPECT_EQ(candidates.size(), 3U);
  EXPECT_EQ(candidates.choose(std::array<std::int64_t, 1>{3}).size(), 3U);
}

TEST(GavelCandidates, WhoLeavesTakesItsPairsAlong) {
  Candidates candidates = candidates_of({{0}, {0}, {0}});
  candidates.add({.job = JobId{0}, .partner = JobId{1}, .gpus = 1});
  candidates.add({.job = JobId{1}, .partner = JobId{2}, .gpus = 1});
  candidates.remove(JobId{0});
  EXPECT_FALSE(candidates.find_pair(JobId{0}, JobId{1}));
  EXPECT_TRUE(candidates.find_pair(JobId{1}, JobId{2}));
  EXPECT_EQ(candidates.size(), 3U);
}

TEST(GavelCandidates, TheLastTakesThePlaceOfWhoLeaves) {
  Candidates candidates = candidates_of({{0.1}, {0.2}, {0.3}});
  candidates.remove(JobId{0});
  EXPECT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].job, JobId{2});
  EXPECT_EQ(candidates.alone(JobId{2}), 0U);
  EXPECT_DOUBLE_EQ(candidates.claim(0, PoolId{0}).share, 0.3);
}

}  // namespace
}  // namespace berth::gavel
