// The ordered set with prefix sums against a plain sorted vector.
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
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

}  // namespace
}  // namespace berth
