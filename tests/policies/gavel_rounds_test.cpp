// Turns from fractions: the worked example round by round, ties, gangs, filling.
#include <gtest/gtest.h>

#include <array>

#include "policies/gavel/rounds.h"

namespace berth::gavel {
namespace {

using Shares = std::vector<std::vector<double>>;

RoundBook book_of(const Shares& shares, const std::vector<std::int32_t>& gpus = {}) {
  RoundBook book{shares[0].size()};
  for (std::uint32_t i = 0; i < shares.size(); ++i) {
    const std::uint32_t at =
        book.add({.job = JobId{i}, .partner = {}, .gpus = gpus.empty() ? 1 : gpus[i]});
    for (std::uint32_t type = 0; type < shares[i].size(); ++type) {
      book.claim(at, PoolId{type}).share = shares[i][type];
      book.claim(at, PoolId{type}).rate = 1;
    }
  }
  return book;
}

constexpr double kRound = 360;

std::vector<Pick> play(RoundBook& book, std::span<const std::int64_t> free) {
  const std::vector<Pick> picks = book.choose(free);
  book.elapse(kRound);
  for (const Pick& pick : picks) book.receive(pick.candidate, pick.pool, kRound);
  return picks;
}

TEST(GavelRounds, TheWorkedExampleStaysWithinOneRoundOfItsShares) {
  const Shares shares{{5.0 / 11, 0}, {5.0 / 11, 1.0 / 11}, {1.0 / 11, 10.0 / 11}};
  RoundBook book = book_of(shares);
  const std::array<std::int64_t, 2> free{1, 1};
  std::vector<std::pair<int, int>> rounds;
  Shares received(3, std::vector<double>(2));
  for (int round = 0; round < 12; ++round) {
    std::pair<int, int> jobs{-1, -1};
    for (const Pick& pick : play(book, free)) {
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

TEST(GavelRounds, WhoNeverRanGoesFirstAndMoreShareBeforeLess) {
  RoundBook book = book_of({{0.3}, {0.5}, {0.2}});
  EXPECT_EQ(book.choose(std::array<std::int64_t, 1>{1}), (std::vector<Pick>{{1, PoolId{0}}}));
  book.receive(1, PoolId{0}, kRound);
  EXPECT_EQ(book.choose(std::array<std::int64_t, 1>{1}), (std::vector<Pick>{{0, PoolId{0}}}));
}

TEST(GavelRounds, AGangThatDoesNotFitIsPassedOver) {
  RoundBook book = book_of({{0.9}, {0.5}}, {4, 1});
  EXPECT_EQ(book.choose(std::array<std::int64_t, 1>{3}), (std::vector<Pick>{{1, PoolId{0}}}));
}

TEST(GavelRounds, WhoIsOwedNothingFillsWhatIsLeftOnItsFastestType) {
  RoundBook book = book_of({{1, 0}, {0, 0}});
  book.claim(1, PoolId{1}).rate = 3;
  const std::array<std::int64_t, 2> free{2, 2};
  EXPECT_EQ(book.choose(free), (std::vector<Pick>{{0, PoolId{0}}, {1, PoolId{1}}}));
  book.claim(1, PoolId{1}).may_fill = false;
  EXPECT_EQ(book.choose(free), (std::vector<Pick>{{0, PoolId{0}}, {1, PoolId{0}}}));
  book.claim(1, PoolId{0}).rate = 0;
  EXPECT_EQ(book.choose(free), (std::vector<Pick>{{0, PoolId{0}}}));
}

TEST(GavelRounds, WhatIsOwedOutlivesNewShares) {
  RoundBook book = book_of({{0.5}, {0.5}});
  const std::array<std::int64_t, 1> free{1};
  EXPECT_EQ(play(book, free)[0].candidate, 0U);
  book.restart(0);
  // by the counters alone it would be the first job's turn again
  EXPECT_EQ(play(book, free)[0].candidate, 1U);
}

TEST(GavelRounds, APairTakesTheTurnsOfBoth) {
  RoundBook book = book_of({{0}, {0}, {0}});
  const std::uint32_t pair = book.add({.job = JobId{0}, .partner = JobId{1}, .gpus = 1});
  book.claim(pair, PoolId{0}) = {.share = 1, .rate = 1};
  EXPECT_EQ(book.choose(std::array<std::int64_t, 1>{3}),
            (std::vector<Pick>{{pair, PoolId{0}}, {2, PoolId{0}}}));
  book.remove_pairs();
  EXPECT_EQ(book.size(), 3U);
  EXPECT_EQ(book.choose(std::array<std::int64_t, 1>{3}).size(), 3U);
}

TEST(GavelRounds, TheLastTakesThePlaceOfWhoLeaves) {
  RoundBook book = book_of({{0.1}, {0.2}, {0.3}});
  book.remove(0);
  EXPECT_EQ(book.size(), 2U);
  EXPECT_EQ(book[0].job, JobId{2});
  EXPECT_DOUBLE_EQ(book.claim(0, PoolId{0}).share, 0.3);
}

}  // namespace
}  // namespace berth::gavel
