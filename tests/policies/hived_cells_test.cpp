// HiveD cells: buddy allocation, the safety test, guests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/rng.h"
#include "policies/hived/cells.h"

namespace berth::hived::cells_tests {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

CellLevels eights(std::uint32_t servers) { return {{1, 2, 4, 8}, servers}; }

// Two servers of 8, lowest id first.
TEST(CellTree, SplitsTheSmallestAndMergesBuddies) {
  CellTree tree(eights(2));
  const auto a = tree.take(0);
  const auto b = tree.take(1);
  const auto c = tree.take(2);
  const auto d = tree.take(0);
  const auto e = tree.take(3);
  EXPECT_EQ(a, (Cell{0, 0}));
  EXPECT_EQ(b, (Cell{1, 1}));  // devices 2 and 3
  EXPECT_EQ(c, (Cell{2, 1}));  // devices 4 to 7
  EXPECT_EQ(d, (Cell{0, 1}));
  EXPECT_EQ(e, (Cell{3, 1}));  // the other server
  EXPECT_EQ(tree.take(2), std::nullopt);

  tree.give(*a);
  EXPECT_THAT(tree.free(), ElementsAre(1, 0, 0, 0));
  tree.give(*d);
  EXPECT_THAT(tree.free(), ElementsAre(0, 1, 0, 0));  // the pair 0..1
  tree.give(*b);
  EXPECT_THAT(tree.free(), ElementsAre(0, 0, 1, 0));  // the four 0..3
  EXPECT_EQ(tree.take(2), (Cell{2, 0}));
}

TEST(CellTree, OddServersSplitInThrees) {
  CellTree tree({{1, 3, 6}, 1});
  EXPECT_EQ(tree.take(0), (Cell{0, 0}));
  EXPECT_THAT(tree.free(), ElementsAre(2, 1, 0));
  EXPECT_EQ(tree.take(1), (Cell{1, 1}));
  EXPECT_EQ(tree.take(0), (Cell{0, 1}));
  tree.give({1, 1});
  tree.give({0, 0});
  tree.give({0, 1});
  EXPECT_THAT(tree.free(), ElementsAre(0, 0, 1));
}

TEST(CellTree, TheOtherEndIsTheHighestDevices) {
  CellTree tree(eights(2));
  EXPECT_EQ(tree.take(0, CellTree::End::Highest), (Cell{0, 15}));
  EXPECT_EQ(tree.take(1, CellTree::End::Highest), (Cell{1, 6}));
  EXPECT_EQ(tree.take(3), (Cell{3, 0}));
}

TEST(CellTree, AGivenCellIsTakenWhereverItLies) {
  CellTree tree(eights(1));
  EXPECT_TRUE(tree.take(Cell{0, 5}));
  EXPECT_THAT(tree.free(), ElementsAre(1, 1, 1, 0));
  EXPECT_FALSE(tree.take(Cell{1, 2}));  // devices 4 and 5
  EXPECT_TRUE(tree.is_free({0, 4}));
}

// Free one 8-cell and one 4-cell; unbound need one 8 and one 4: f8 = 0, f4 = 1 + 2*0 - 1 = 0.
TEST(CellSafety, CountsWhatSplittingCouldGive) {
  const std::vector<std::int32_t> children{2, 0};  // levels 4 and 8
  const std::vector<std::int64_t> need{1, 1};
  EXPECT_TRUE(is_safe(std::vector<std::int64_t>{1, 1}, need, children));
  // a guest that cannot be put out on the 4-cell: f4 = -1
  EXPECT_FALSE(is_safe(std::vector<std::int64_t>{0, 1}, need, children));
  EXPECT_TRUE(is_safe(std::vector<std::int64_t>{0, 2}, need, children));   // f8 = 1, f4 = 0+2-1
  EXPECT_FALSE(is_safe(std::vector<std::int64_t>{5, 0}, need, children));  // fours make no eight
}

// The same through the shares: 2 servers, 4 devices of the first are another tenant's already.
TEST(CellShares, AFirmGuestIsRefusedWhereAPreemptibleOneMayStay) {
  CellShares shares({{4, 8}, 2}, {{1, 1}, {1, 0}});
  ASSERT_TRUE(shares.is_satisfiable());
  std::vector<Cell> evicted;
  EXPECT_EQ(shares.bind(1, 0, evicted), (Cell{0, 0}));
  EXPECT_EQ(shares.admit_firm_guest(0), std::nullopt);
  const auto guest = shares.admit_guest(0);
  ASSERT_EQ(guest, (Cell{0, 1}));  // the broken server, not the whole one that somebody may bind
  EXPECT_EQ(shares.bind(0, 1, evicted), (Cell{1, 1}));
  EXPECT_THAT(evicted, IsEmpty());
  EXPECT_EQ(shares.bind(0, 0, evicted), (Cell{0, 1}));
  EXPECT_THAT(evicted, ElementsAre(*guest));
  EXPECT_EQ(shares.bind(0, 0, evicted), std::nullopt);  // it owns no more
}

TEST(CellShares, AGuestOnALargeCellGivesWayToASmallOne) {
  CellShares shares(eights(1), {{1, 0, 0, 0}});
  const auto guest = shares.admit_guest(3);
  std::vector<Cell> evicted;
  EXPECT_EQ(shares.bind(0, 0, evicted), (Cell{0, 0}));
  EXPECT_THAT(evicted, ElementsAre(*guest));
  EXPECT_EQ(shares.admit_guest(2), (Cell{2, 1}));  // the rest is free again
}

TEST(CellShares, WhatIsOutOfServiceIsMissingUntilItComesBack) {
  CellShares shares(eights(1), {{0, 0, 0, 1}});
  std::vector<Cell> evicted;
  shares.block({3, 0});
  EXPECT_EQ(shares.bind(0, 3, evicted), std::nullopt);
  EXPECT_EQ(shares.admit_guest(0), std::nullopt);
  shares.unblock({3, 0});
  EXPECT_TRUE(shares.admit_guest_at({0, 5}));
  EXPECT_FALSE(shares.admit_guest_at({1, 2}));  // devices 4 and 5
  EXPECT_EQ(shares.bind(0, 3, evicted), (Cell{3, 0}));
  EXPECT_THAT(evicted, ElementsAre(Cell{0, 5}));
}

TEST(CellShares, TooManyOwnedCellsAreTold) {
  EXPECT_FALSE(CellShares(eights(1), {{0, 0, 1, 0}, {0, 0, 2, 0}}).is_satisfiable());
  EXPECT_TRUE(CellShares(eights(1), {{0, 0, 1, 0}, {2, 1, 0, 0}}).is_satisfiable());
}

// Whatever tenants and guests do, a tenant always gets a cell it owns (bind() checks that itself),
// no two holders overlap, and everything comes back whole.
TEST(CellSharesProperty, ATenantNeverWaitsForItsCells) {
  const CellLevels levels{{1, 3, 6, 12}, 6};
  const std::vector<std::vector<std::int64_t>> owned{{3, 1, 1, 1}, {2, 2, 1, 0}, {4, 0, 1, 1}};
  CellShares shares(levels, owned);
  ASSERT_TRUE(shares.is_satisfiable());
  Rng rng(3);
  std::vector<std::pair<std::uint32_t, Cell>> bound;
  std::vector<Cell> guests;
  std::vector<Cell> firm;
  const auto drop = [&](auto& from) {
    const std::size_t i = rng.below(from.size());
    const auto one = from[i];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    return one;
  };
  for (int step = 0; step < 50'000; ++step) {
    const auto level = static_cast<std::uint32_t>(rng.below(4));
    const auto tenant = static_cast<std::uint32_t>(rng.below(3));
    switch (rng.below(6)) {
      case 0: {
        std::vector<Cell> evicted;
        const bool owns = shares.unbound(tenant, level) > 0;
        const auto cell = shares.bind(tenant, level, evicted);
        EXPECT_EQ(cell.has_value(), owns);
        if (cell) bound.emplace_back(tenant, *cell);
        for (const Cell& guest : evicted) EXPECT_EQ(std::erase(guests, guest), 1U);
        break;
      }
      case 1:
        if (!bound.empty()) {
          const auto [owner, cell] = drop(bound);
          shares.unbind(owner, cell);
        }
        break;
      case 2:
        if (const auto cell = shares.admit_guest(level)) guests.push_back(*cell);
        break;
      case 3:
        if (!guests.empty()) shares.release_guest(drop(guests));
        break;
      case 4:
        if (const auto cell = shares.admit_firm_guest(level)) firm.push_back(*cell);
        break;
      default:
        if (!firm.empty()) shares.release_firm_guest(drop(firm));
    }
    std::vector<int> holders(72);
    const auto mark = [&](Cell cell) {
      for (std::int32_t i = 0; i < levels.sizes[cell.level]; ++i)
        ++holders[cell.index * static_cast<std::size_t>(levels.sizes[cell.level]) +
                  static_cast<std::size_t>(i)];
    };
    for (const auto& [owner, cell] : bound) mark(cell);
    for (const Cell& cell : guests) mark(cell);
    for (const Cell& cell : firm) mark(cell);
    ASSERT_LE(*std::ranges::max_element(holders), 1);
  }
  for (const auto& [owner, cell] : bound) shares.unbind(owner, cell);
  for (const Cell& cell : guests) shares.release_guest(cell);
  for (const Cell& cell : firm) shares.release_firm_guest(cell);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(shares.admit_guest(3));  // whole again
}

}  // namespace
}  // namespace berth::hived::cells_tests
