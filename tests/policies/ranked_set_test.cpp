// Queues and sets that policies share, against plain ones: the ordered set with prefix sums, queues
// for backfill, limits of a pass by rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/rng.h"
#include "policies/common/backfill_queues.h"
#include "policies/common/place_limits.h"
#include "policies/common/ranked_set.h"

namespace berth {
namespace {

class Naive {
 public:
  void insert(std::uint64_t key, std::int64_t weight) { entries_[key] = weight; }
  void erase(std::uint64_t key) { entries_.erase(key); }
  [[nodiscard]] bool has(std::uint64_t key) const { return entries_.contains(key); }
  [[nodiscard]] std::int64_t sum_before(std::uint64_t key) const {
    std::int64_t sum = 0;
    for (const auto& [k, w] : entries_) sum += k < key ? w : 0;
    return sum;
  }
  [[nodiscard]] std::optional<std::uint64_t> reach(std::int64_t target) const {
    std::int64_t sum = 0;
    for (const auto& [k, w] : entries_) {
      sum += w;
      if (sum >= target) return k;
    }
    return std::nullopt;
  }
  [[nodiscard]] const std::map<std::uint64_t, std::int64_t>& entries() const { return entries_; }

 private:
  std::map<std::uint64_t, std::int64_t> entries_;
};

TEST(RankedSet, AgreesWithASortedMap) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng{seed};
    RankedSet<std::uint64_t> set;
    Naive naive;
    const std::uint64_t range = seed % 2 == 0 ? 300 : 100'000;
    for (int step = 0; step < 6000; ++step) {
      const std::uint64_t key = rng.below(range);
      // Grow first, shrink later, so that blocks split and vanish.
      const bool grow = rng.below(100) < (step < 3500 ? 75U : 25U);
      if (grow && !naive.has(key)) {
        const auto weight = static_cast<std::int64_t>(rng.below(9)) + 1;
        set.insert(key, weight);
        naive.insert(key, weight);
      } else if (!naive.entries().empty()) {
        auto victim = naive.entries().lower_bound(key);
        if (victim == naive.entries().end()) victim = naive.entries().begin();
        const std::uint64_t gone = victim->first;
        set.erase(gone);
        naive.erase(gone);
      }
      ASSERT_EQ(set.size(), naive.entries().size());
      if (step % 7 != 0 || set.empty()) continue;
      ASSERT_EQ(set.front().key, naive.entries().begin()->first);
      ASSERT_EQ(set.back().key, naive.entries().rbegin()->first);
      const std::uint64_t probe = rng.below(range);
      ASSERT_EQ(set.sum_before(probe), naive.sum_before(probe));
      const auto target =
          static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(set.total()) + 3));
      const auto expected = naive.reach(target);
      const auto* found = set.reach(target);
      ASSERT_EQ(found != nullptr, expected.has_value() && target <= set.total());
      if (found != nullptr) {
        ASSERT_EQ(found->key, *expected);
      }
    }
  }
}

// Jobs come, leave, and some of those that left come back, in one of three groups.
TEST(BackfillQueues, FindTheFirstJobThatIsShortEnough) {
  Rng rng{7};
  BackfillQueues<ShapeId> queues;
  std::map<JobId, std::int64_t> naive;  // those that wait
  const auto group = [](JobId job) { return ShapeId{job.value % 3}; };
  std::uint32_t newest = 0;
  for (int step = 0; step < 3000; ++step) {
    const auto change = rng.below(3);
    const JobId job{change == 0 ? newest++ : static_cast<std::uint32_t>(rng.below(newest + 1))};
    if (naive.erase(job) > 0) {
      queues.forget(group(job), job);
    } else if (change < 2 && job.value < newest) {
      naive[job] = static_cast<std::int64_t>(rng.below(1000));
      queues.push(group(job), job, Duration{naive[job]});
    } else {
      queues.forget(group(job), job);  // it does not wait: nothing happens
    }
    const auto limit = static_cast<std::int64_t>(rng.below(1000));
    for (const ShapeId shape : {ShapeId{0}, ShapeId{1}, ShapeId{2}}) {
      std::optional<JobId> first;
      std::optional<JobId> first_short;
      for (const auto& [each, estimate] : naive) {
        if (group(each) != shape) continue;
        if (!first) first = each;
        if (!first_short && estimate <= limit) first_short = each;
      }
      const bool is_active = std::ranges::count(queues.active(), shape) == 1;
      ASSERT_EQ(is_active, first.has_value());
      if (!is_active) continue;
      ASSERT_EQ(queues.first(shape), *first);
      ASSERT_EQ(queues.first_at_most(shape, Duration{limit}), first_short);
    }
  }
}

TEST(PlaceLimits, ExcludeWhoeverOfTheShapeComesBehind) {
  PlaceLimits<int> limits;
  limits.begin(2);
  limits.set(ShapeId{1}, PoolId{0}, 5);
  EXPECT_TRUE(limits.any());
  EXPECT_FALSE(limits.excludes(ShapeId{1}, PoolId{0}, 4));
  EXPECT_TRUE(limits.excludes(ShapeId{1}, PoolId{0}, 5));
  EXPECT_TRUE(limits.excludes(ShapeId{1}, PoolId{0}, 6));
  EXPECT_FALSE(limits.excludes(ShapeId{1}, PoolId{1}, 6));
  limits.clear();
  EXPECT_FALSE(limits.any());
  EXPECT_FALSE(limits.excludes(ShapeId{1}, PoolId{0}, 6));
}

}  // namespace
}  // namespace berth
