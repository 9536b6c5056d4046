// What the primal-dual rule of OASiS promises, held against everything that could be done.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/rng.h"
#include "policies/oasis/cheapest.h"
#include "policies/oasis/offline.h"
#include "policies/oasis/price_book.h"
#include "policies/oasis/price_range.h"
#include "policies/oasis/utility.h"
#include "policies/oasis_instances.h"

namespace berth::oasis {
namespace {

struct TinyJob {
  std::int64_t arrival = 0;
  std::int64_t work = 1;
  std::int64_t max_workers = 1;
  std::vector<double> worth;  // by slot
};

/// A few jobs in order of arrival on one server of `capacity` GPUs.
struct TinyInstance {
  std::int64_t capacity = 2;
  std::int64_t slots = 3;
  std::vector<TinyJob> jobs;
};

TinyInstance random_instance(std::uint64_t seed) {
  Rng rng{seed};
  TinyInstance tiny;
  tiny.capacity = 1 + static_cast<std::int64_t>(rng.below(3));
  tiny.slots = 2 + static_cast<std::int64_t>(rng.below(2));
  for (std::uint64_t i = 0; i < 2 + rng.below(3); ++i) {
    TinyJob job;
    job.arrival = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(tiny.slots)));
    job.work = 1 + static_cast<std::int64_t>(rng.below(4));
    job.max_workers = 1 + static_cast<std::int64_t>(rng.below(2));
    job.worth = falling(rng, tiny.slots, 1 + 20 * rng.uniform());
    tiny.jobs.push_back(job);
  }
  std::ranges::stable_sort(tiny.jobs, {}, &TinyJob::arrival);
  return tiny;
}

/// The most utility any schedule could have, knowing everything.
double best_possible(const TinyInstance& tiny, std::size_t i, std::vector<std::int64_t>& free) {
  if (i == tiny.jobs.size()) return 0;
  const TinyJob& job = tiny.jobs[i];
  double best = best_possible(tiny, i + 1, free);  // without it
  const std::function<void(std::int64_t, std::int64_t)> place = [&](std::int64_t slot,
                                                                    std::int64_t left) {
    if (left == 0) {
      best = std::max(
          best, job.worth[static_cast<std::size_t>(slot - 1)] + best_possible(tiny, i + 1, free));
      return;
    }
    if (slot == tiny.slots) return;
    std::int64_t& room = free[static_cast<std::size_t>(slot)];
    for (std::int64_t y = 0; y <= std::min({left, job.max_workers, room}); ++y) {
      room -= y;
      place(slot + 1, left - y);
      room += y;
    }
  };
  place(job.arrival, job.work);
  return best;
}

struct TinyOutcome {
  double utility = 0;
  double alpha = 1;
};

TinyOutcome run_oasis(const TinyInstance& tiny) {
  PriceRange range{1, static_cast<double>(tiny.capacity * tiny.slots)};
  for (const TinyJob& job : tiny.jobs) {
    const std::int64_t fewest = (job.work + job.max_workers - 1) / job.max_workers;
    const std::int64_t soonest = std::min(tiny.slots, job.arrival + fewest) - 1;
    range.see({.best = job.worth[static_cast<std::size_t>(soonest)],
               .worst = job.worth.back(),
               .work = static_cast<double>(job.work)},
              Amounts{1});
  }
  PriceBook book{{{tiny.capacity}}, tiny.slots};
  book.set_range(range.low(), range.high());
  TinyOutcome outcome{.utility = 0, .alpha = range.alpha()};
  for (const TinyJob& job : tiny.jobs) {
    const Finish finish{.first = job.arrival, .end = tiny.slots, .worth = [&](std::int64_t slot) {
                          return job.worth[static_cast<std::size_t>(slot)];
                        }};
    const auto best =
        best_schedule({&book, nullptr}, workers_only(job.work, job.max_workers), finish);
    if (!best || best->payoff() <= 0) continue;
    book.promise(best->workers, Amounts{1});
    outcome.utility += best->worth;
    for (std::int64_t t = 0; t < tiny.slots; ++t)
      EXPECT_LE(book.promised(0, 0, t), tiny.capacity) << "capacity is never exceeded";
  }
  return outcome;
}

TEST(OasisGuarantee, UtilityIsWithinTwiceAlphaKappaOfTheBestPossible) {
  double worst = 1;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const TinyInstance tiny = random_instance(seed);
    std::vector<std::int64_t> free(static_cast<std::size_t>(tiny.slots), tiny.capacity);
    const double best = best_possible(tiny, 0, free);
    const TinyOutcome ours = run_oasis(tiny);
    std::int64_t most = 1;  // units that a job may add to a cell
    for (const TinyJob& job : tiny.jobs)
      most = std::max(most, std::min({job.max_workers, job.work, tiny.capacity}));
    const double delta =
        ours.alpha * static_cast<double>(most) / static_cast<double>(tiny.capacity);
    const double kappa = (std::exp(delta) - 1) / delta;
    ASSERT_GE(ours.utility * 2 * ours.alpha * kappa, best - 1e-9) << "seed " << seed;
    ASSERT_LE(ours.utility, best + 1e-9) << "seed " << seed;
    if (ours.utility > 0) worst = std::max(worst, best / ours.utility);
  }
  EXPECT_GT(worst, 1.2);  // the instances are hard enough to tell
}

TEST(OasisOffline, TheIntegerProgramFindsWhatTryingEverythingFinds) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const TinyInstance tiny = random_instance(seed);
    std::vector<OfflineJob> jobs;
    for (const TinyJob& job : tiny.jobs)
      jobs.push_back({job.arrival, job.work, job.max_workers, job.worth});
    std::vector<std::int64_t> free(static_cast<std::size_t>(tiny.slots), tiny.capacity);
    const auto optimum = offline_optimum(tiny.capacity, tiny.slots, jobs);
    ASSERT_TRUE(optimum.has_value());
    EXPECT_NEAR(*optimum, best_possible(tiny, 0, free), 1e-4) << "seed " << seed;
  }
}

TEST(OasisOffline, NobodyIsWorthNothing) {
  const auto optimum = offline_optimum(4, 3, {});
  ASSERT_TRUE(optimum.has_value());
  EXPECT_EQ(*optimum, 0);
}

TEST(OasisGuarantee, CapacityHoldsOnRandomStreams) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng{seed};
    PriceBook book = random_book(rng, 12);
    for (int i = 0; i < 40; ++i) {
      const Demand demand = workers_only(1 + static_cast<std::int64_t>(rng.below(15)),
                                         1 + static_cast<std::int64_t>(rng.below(6)));
      const auto best = best_schedule({&book, nullptr}, demand, finish_of(falling(rng, 12, 100)));
      if (best && best->payoff() > 0) book.promise(best->workers, demand.worker);
      for (std::uint32_t s = 0; s < book.servers(); ++s) {
        for (std::int64_t t = 0; t < 12; ++t)
          ASSERT_LE(book.promised(s, 0, t), book.capacity(s, 0)) << "seed " << seed;
      }
    }
  }
}

TEST(OasisGuarantee, AJobWorthMoreIsNeverRefusedWhereItWasAcceptedForLess) {
  int accepted = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng{seed};
    const PriceBook book = random_book(rng, 6);
    const Demand demand = workers_only(1 + static_cast<std::int64_t>(rng.below(8)), 3);
    std::vector<double> worth = falling(rng, 6, 30);
    const auto before = best_schedule({&book, nullptr}, demand, finish_of(worth));
    if (!before || before->payoff() <= 0) continue;
    ++accepted;
    for (std::size_t t = 0; t < worth.size(); ++t) worth[t] += rng.uniform();
    std::ranges::sort(worth, std::ranges::greater{});
    const auto after = best_schedule({&book, nullptr}, demand, finish_of(worth));
    ASSERT_TRUE(after.has_value());
    EXPECT_GE(after->payoff(), before->payoff()) << "seed " << seed;
  }
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace berth::oasis
