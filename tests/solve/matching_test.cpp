// Maximum weight matching against every matching there is, on graphs small enough to try them all.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "solve/matching.h"

namespace berth {
namespace {

std::int64_t heaviest_between(const std::vector<MatchingEdge>& edges, int a, int b) {
  std::int64_t best = 0;
  for (const MatchingEdge& edge : edges) {
    if ((edge.a == a && edge.b == b) || (edge.a == b && edge.b == a))
      best = std::max(best, edge.weight);
  }
  return best;
}

std::int64_t best_by_trying_all(const std::vector<MatchingEdge>& edges, int nodes,
                                unsigned taken = 0) {
  int first = 0;
  while (first < nodes && ((taken >> first) & 1U) != 0) ++first;
  if (first == nodes) return 0;
  const unsigned with_first = taken | (1U << first);
  std::int64_t best = best_by_trying_all(edges, nodes, with_first);  // first stays alone
  for (int other = first + 1; other < nodes; ++other) {
    if (((taken >> other) & 1U) != 0) continue;
    const std::int64_t weight = heaviest_between(edges, first, other);
    if (weight > 0)
      best = std::max(best, weight + best_by_trying_all(edges, nodes, with_first | (1U << other)));
  }
  return best;
}

std::vector<MatchingEdge> random_graph(Rng& rng, int nodes, std::uint64_t weights) {
  std::vector<MatchingEdge> edges;
  const std::uint64_t density = 1 + rng.below(4);
  for (int a = 0; a < nodes; ++a) {
    for (int b = a + 1; b < nodes; ++b) {
      if (rng.below(4) < density)
        edges.push_back({a, b, static_cast<std::int64_t>(rng.below(weights)) - 2});
    }
  }
  return edges;
}

TEST(Matching, IsAsHeavyAsTheBestOfAllMatchings) {
  Rng rng{7};
  for (int round = 0; round < 400; ++round) {
    const int nodes = 1 + static_cast<int>(rng.below(10));
    const auto edges = random_graph(rng, nodes, round % 2 == 0 ? 8 : 1'000'000'000);
    const std::vector<int> partner = max_weight_matching(nodes, edges);
    ASSERT_EQ(partner.size(), static_cast<std::size_t>(nodes));
    std::int64_t weight = 0;
    for (int i = 0; i < nodes; ++i) {
      const int mate = partner[static_cast<std::size_t>(i)];
      if (mate == kUnmatched) continue;
      ASSERT_EQ(partner[static_cast<std::size_t>(mate)], i);
      const std::int64_t edge = heaviest_between(edges, i, mate);
      ASSERT_GT(edge, 0) << "only edges that weigh something are taken";
      if (i < mate) weight += edge;
    }
    EXPECT_EQ(weight, best_by_trying_all(edges, nodes)) << "round " << round;
  }
}

TEST(Matching, TakesTwoGoodPairsRatherThanTheBestOne) {
  // a path 5-6-5: the two ends weigh 10, the middle 6
  const auto partner = max_weight_matching(4, {{0, 1, 5}, {1, 2, 6}, {2, 3, 5}});
  EXPECT_EQ(partner, (std::vector<int>{1, 0, 3, 2}));
}

TEST(Matching, OddCircleLeavesTheLightestOut) {
  const auto partner = max_weight_matching(3, {{0, 1, 3}, {1, 2, 9}, {2, 0, 4}});
  EXPECT_EQ(partner, (std::vector<int>{kUnmatched, 2, 1}));
}

TEST(Matching, NothingToMatch) {
  EXPECT_TRUE(max_weight_matching(0, {}).empty());
  EXPECT_EQ(max_weight_matching(2, {{0, 1, 0}, {1, 0, -4}, {1, 1, 5}}),
            (std::vector<int>{kUnmatched, kUnmatched}));
}

TEST(Matching, SameEdgesGiveTheSameMatching) {
  Rng rng{3};
  const auto edges = random_graph(rng, 60, 5);  // ties everywhere
  EXPECT_EQ(max_weight_matching(60, edges), max_weight_matching(60, edges));
}

}  // namespace
}  // namespace berth
