// The promises of Chronus: worked examples, and admission against trying everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/rng.h"
#include "policies/chronus/lease_plan.h"
#include "policies/chronus/optimum.h"

namespace berth::chronus {
namespace {

LeaseRequest request(std::uint32_t job, std::int64_t gpus, std::int64_t leases, Term end) {
  return {.job = JobId{job}, .gpus = gpus, .leases = leases, .end = end};
}

std::vector<Term> leases_of(const LeasePlan& plan, std::uint32_t job) {
  const auto terms = plan.leases(JobId{job});
  return {terms.begin(), terms.end()};
}

using Terms = std::vector<Term>;

// S1 … S4 of the worked example.
const std::vector<LeaseRequest> kFour{request(1, 2, 2, 2), request(2, 4, 1, 3), request(3, 2, 3, 3),
                                      request(4, 2, 1, 2)};

TEST(LeasePlan, AdmitsTheWorkedExampleInOrderOfArrival) {
  LeasePlan plan{4};
  EXPECT_EQ(plan.admit(kFour[0]), Verdict::Direct);
  EXPECT_EQ(plan.admit(kFour[1]), Verdict::Direct);
  EXPECT_EQ(plan.admit(kFour[2]), Verdict::Demand);  // 2x2 + 4x1 + 2x3 = 14 of 12
  EXPECT_EQ(plan.admit(kFour[3]), Verdict::Direct);
  EXPECT_EQ(leases_of(plan, 1), (Terms{0, 1}));
  EXPECT_EQ(leases_of(plan, 2), (Terms{2}));
  EXPECT_EQ(leases_of(plan, 4), (Terms{0}));
  EXPECT_EQ(plan.used(0), 4);
  EXPECT_EQ(plan.used(1), 2);
  EXPECT_EQ(plan.used(2), 4);
  EXPECT_EQ(plan.used(3), 0);
}

TEST(LeasePlan, MovesAnEarlierPromiseForAnUrgentJob) {
  LeasePlan plan{4};
  ASSERT_EQ(plan.admit(request(1, 2, 1, 3)), Verdict::Direct);
  ASSERT_EQ(leases_of(plan, 1), (Terms{0}));
  EXPECT_EQ(plan.admit(request(2, 4, 1, 1)), Verdict::Replanned);
  EXPECT_EQ(leases_of(plan, 2), (Terms{0}));
  EXPECT_EQ(leases_of(plan, 1), (Terms{1}));
}

TEST(LeasePlan, SaysWhyItRefuses) {
  LeasePlan plan{4};
  EXPECT_EQ(plan.admit(request(1, 1, 4, 3)), Verdict::TooLong);
  EXPECT_EQ(plan.admit(request(1, 8, 1, 3)), Verdict::TooWide);
  EXPECT_EQ(plan.admit(request(1, 4, 3, 3)), Verdict::Direct);
  EXPECT_EQ(plan.admit(request(2, 1, 1, 3)), Verdict::Demand);
  EXPECT_EQ(plan.admit(request(2, 1, 1, 4)), Verdict::Direct);
  EXPECT_EQ(leases_of(plan, 2), (Terms{3}));
}

TEST(LeasePlan, TakesTheFullestTermThatStillHoldsIt) {
  LeasePlan plan{4};
  ASSERT_EQ(plan.admit(request(1, 2, 3, 3)), Verdict::Direct);
  ASSERT_EQ(plan.admit(request(2, 1, 1, 3)),
            Verdict::Direct);  // term 0: the fullest is the earliest
  ASSERT_EQ(plan.admit(request(3, 1, 2, 9)), Verdict::Direct);  // 3 used there, then 2 in term 1
  EXPECT_EQ(leases_of(plan, 3), (Terms{0, 1}));
}

TEST(LeasePlan, ForgetsThePastAndGivesSurplusBack) {
  LeasePlan plan{4};
  ASSERT_EQ(plan.admit(request(1, 2, 4, 6)), Verdict::Direct);
  std::vector<JobId> next;
  plan.next_jobs(next);
  EXPECT_EQ(next, (std::vector<JobId>{JobId{1}}));
  plan.advance(1);
  EXPECT_EQ(leases_of(plan, 1), (Terms{1, 2, 3}));
  EXPECT_TRUE(plan.resize(JobId{1}, 1));
  EXPECT_EQ(leases_of(plan, 1), (Terms{1}));
  EXPECT_EQ(plan.used(2), 0);
  EXPECT_TRUE(plan.resize(JobId{1}, 5));
  EXPECT_EQ(leases_of(plan, 1), (Terms{1, 2, 3, 4, 5}));
  EXPECT_FALSE(plan.resize(JobId{1}, 6));
  EXPECT_EQ(leases_of(plan, 1).size(), 5U);
  plan.remove(JobId{1});
  EXPECT_EQ(plan.used(1), 0);
  EXPECT_EQ(plan.admit(request(2, 4, 5, 6)), Verdict::Direct);  // nothing is owed any more
}

TEST(LeasePlan, LaysOutAnewWhenAServerIsLost) {
  LeasePlan plan{8};
  ASSERT_EQ(plan.admit(request(1, 4, 2, 4)), Verdict::Direct);
  ASSERT_EQ(plan.admit(request(2, 4, 2, 4)), Verdict::Direct);
  EXPECT_TRUE(plan.set_capacity(4));
  for (Term term = 0; term < 4; ++term) EXPECT_EQ(plan.used(term), 4);
  EXPECT_FALSE(plan.set_capacity(2));
}

// Section 4 of the model: with a choice, the reward decides; all four are more than there is.
TEST(Selection, FindsTheOnlyBestSetOfTheWorkedExample) {
  std::vector<SelectionJob> jobs;
  for (const LeaseRequest& one : kFour)
    jobs.push_back({.gpus = one.gpus, .leases = one.leases, .end = one.end});
  const std::vector<std::int64_t> capacity(4, 4);
  const auto best = best_selection(jobs, capacity, {});
  ASSERT_TRUE(best.has_value());
  EXPECT_TRUE(best->is_proven);
  EXPECT_DOUBLE_EQ(best->reward, 3);
  EXPECT_EQ(best->leases[0], (Terms{0, 1}));
  EXPECT_EQ(best->leases[1], (Terms{2}));
  EXPECT_TRUE(best->leases[2].empty());
  EXPECT_EQ(best->leases[3], (Terms{0}));

  jobs.erase(jobs.begin() + 1);
  const auto without = best_selection(jobs, capacity, {});
  EXPECT_DOUBLE_EQ(without->reward, 2);
  EXPECT_EQ(without->leases[0], (Terms{0, 1}));  // of five plans with two jobs the earliest
  EXPECT_EQ(without->leases[2], (Terms{0}));

  jobs[1].reward = 5;  // S3 is worth more than the two others
  const auto other = best_selection(jobs, capacity, {});
  EXPECT_DOUBLE_EQ(other->reward, 6);
  EXPECT_EQ(other->leases[1].size(), 3U);
}

TEST(Selection, KeepsPromisesOrSaysThatItCannot) {
  std::vector<SelectionJob> jobs{{.gpus = 4, .leases = 1, .end = 1, .is_promised = true},
                                 {.gpus = 1, .leases = 1, .end = 1, .reward = 9}};
  const std::vector<std::int64_t> capacity(1, 4);
  EXPECT_DOUBLE_EQ(best_selection(jobs, capacity, {})->reward, 1);
  jobs[1].is_promised = true;
  EXPECT_FALSE(best_selection(jobs, capacity, {}).has_value());
  const auto nobody = best_selection({}, capacity, {});
  ASSERT_TRUE(nobody.has_value());
  EXPECT_TRUE(nobody->is_proven);
  EXPECT_EQ(nobody->reward, 0);
}

// Trying everything, for few jobs and terms: a job at a time, every set of its terms. Visits every
// plan for all of them with the sum of its terms; ends when `visit` says that it has seen enough.
template <class Visit>
bool each_plan(std::span<const LeaseRequest> jobs, std::vector<std::int64_t>& used,
               std::int64_t capacity, Term sum, const Visit& visit) {
  if (jobs.empty()) return visit(sum);
  const LeaseRequest& job = jobs.front();
  for (unsigned set = 0; set < 1U << job.end; ++set) {
    if (std::popcount(set) != job.leases) continue;
    bool fits = true;
    Term own = 0;
    for (Term t = 0; t < job.end; ++t) {
      if ((set >> t & 1U) == 0) continue;
      fits = fits && used[static_cast<std::size_t>(t)] + job.gpus <= capacity;
      own += t;
    }
    if (!fits) continue;
    const auto add = [&](std::int64_t gpus) {
      for (Term t = 0; t < job.end; ++t) {
        if ((set >> t & 1U) != 0) used[static_cast<std::size_t>(t)] += gpus;
      }
    };
    add(job.gpus);
    const bool enough = each_plan(jobs.subspan(1), used, capacity, sum + own, visit);
    add(-job.gpus);
    if (enough) return true;
  }
  return false;
}

bool can_hold(std::span<const LeaseRequest> jobs, std::int64_t capacity) {
  std::vector<std::int64_t> used(6);
  return each_plan(jobs, used, capacity, 0, [](Term) { return true; });
}

/// Sums of the terms of every plan, smallest first.
std::vector<Term> plans_of(std::span<const LeaseRequest> jobs, std::int64_t capacity) {
  std::vector<std::int64_t> used(6);
  std::vector<Term> sums;
  static_cast<void>(each_plan(jobs, used, capacity, 0, [&](Term sum) {
    sums.push_back(sum);
    return false;
  }));
  std::ranges::sort(sums);
  return sums;
}

TEST(Selection, OnlyOneSetOfThreeFitsAndFivePlansOfTwoWithoutTheWideJob) {
  const auto plans = [](std::vector<std::size_t> chosen) {
    std::vector<LeaseRequest> jobs;
    for (const std::size_t i : chosen) jobs.push_back(kFour[i - 1]);
    return plans_of(jobs, 4).size();
  };
  EXPECT_EQ(plans({1, 2, 3, 4}), 0U);
  EXPECT_EQ(plans({1, 2, 4}), 2U) << "S4 in term 0 or 1";
  EXPECT_EQ(plans({1, 2, 3}) + plans({1, 3, 4}) + plans({2, 3, 4}), 0U);
  EXPECT_EQ(plans({1, 3}) + plans({1, 4}) + plans({3, 4}), 5U);
}

// Leases that can come later make way for guests of the next term, but only if the guests come.
TEST(LeasePlan, MakesWayForThoseWhoAreWorthMost) {
  LeasePlan plan{4};
  ASSERT_EQ(plan.admit(request(1, 4, 1, 3)), Verdict::Direct);
  ASSERT_EQ(plan.admit(request(2, 2, 1, 1)), Verdict::Replanned);  // has to have term 0
  ASSERT_EQ(leases_of(plan, 1), (Terms{1}));
  plan.remove(JobId{2});
  ASSERT_EQ(plan.admit(request(3, 2, 1, 1)), Verdict::Direct);
  const std::vector<LeaseGuest> guests{{.gpus = 4, .reward = 5},
                                       {.gpus = 1, .reward = 1e-4},
                                       {.gpus = 1, .reward = 2e-4},
                                       {.gpus = 2, .reward = 2.5e-4}};
  const auto comes = plan.make_way(guests);
  ASSERT_TRUE(comes.has_value());
  EXPECT_EQ(*comes, (std::vector<bool>{false, true, true, false})) << "beside the promise";
  EXPECT_EQ(leases_of(plan, 3), (Terms{0}));
  EXPECT_EQ(leases_of(plan, 1), (Terms{1})) << "as early as it can be";
  plan.remove(JobId{3});
  EXPECT_EQ(*plan.make_way(std::span{guests}.first(1)), (std::vector<bool>{true}));
  EXPECT_EQ(leases_of(plan, 1), (Terms{1}));
  EXPECT_EQ(plan.used(0), 0) << "a guest has no promise";
  EXPECT_EQ(plan.make_way({}), std::vector<bool>{});
  EXPECT_EQ(leases_of(plan, 1), (Terms{0})) << "with nobody to make way for";
  LeasePlan quick{4, {.jobs = 0}};
  EXPECT_FALSE(quick.make_way(guests).has_value());
}

void expect_sound(const LeasePlan& plan, std::span<const LeaseRequest> admitted) {
  std::vector<std::int64_t> used(6);
  for (const LeaseRequest& job : admitted) {
    const auto terms = plan.leases(job.job);
    ASSERT_EQ(std::ssize(terms), job.leases);
    ASSERT_TRUE(std::ranges::adjacent_find(terms, std::ranges::greater_equal{}) == terms.end());
    for (const Term term : terms) {
      ASSERT_GE(term, 0);
      ASSERT_LT(term, job.end);
      used[static_cast<std::size_t>(term)] += job.gpus;
    }
  }
  for (std::size_t t = 0; t < used.size(); ++t) {
    ASSERT_LE(used[t], plan.capacity());
    ASSERT_EQ(used[t], plan.used(static_cast<Term>(t)));
  }
}

TEST(LeasePlan, RefusesExactlyWhatCannotBePromised) {
  Rng rng{7};
  int replanned = 0, searched = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    LeasePlan plan{4};
    std::vector<LeaseRequest> admitted;
    for (std::uint32_t j = 0; j < 6; ++j) {
      const Term end = 1 + static_cast<Term>(rng.below(5));
      const LeaseRequest job =
          request(j, std::int64_t{1} << rng.below(3),
                  1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(end))), end);
      std::vector<LeaseRequest> all = admitted;
      all.push_back(job);
      const Verdict verdict = plan.admit(job);
      ASSERT_EQ(is_admitted(verdict), can_hold(all, 4)) << "round " << round << " job " << j;
      replanned += verdict == Verdict::Replanned ? 1 : 0;
      searched += verdict == Verdict::Searched ? 1 : 0;
      refused += is_admitted(verdict) ? 0 : 1;
      if (is_admitted(verdict)) admitted = all;
      expect_sound(plan, admitted);
      if (verdict != Verdict::Searched) continue;
      Term sum = 0;
      for (const LeaseRequest& each : admitted) {
        for (const Term term : plan.leases(each.job)) sum += term;
      }
      ASSERT_EQ(sum, plans_of(admitted, 4).front()) << "the earliest plan, round " << round;
    }
  }
  EXPECT_GT(replanned, 0);
  EXPECT_GT(searched, 0);
  EXPECT_GT(refused, 0);
}

// Without the exact step earliest deadline first alone still finds most feasible sets.
TEST(LeasePlan, FindsThePublishedShareOfFeasibleSetsWithoutTheSearch) {
  const std::vector<double> expected{1.00, 0.95, 0.87, 0.75, 0.64};
  Rng rng{11};
  for (std::size_t n = 2; n <= 6; ++n) {
    int feasible = 0, found = 0;
    while (feasible < 400) {
      std::vector<LeaseRequest> jobs;
      for (std::uint32_t j = 0; j < n; ++j) {
        const Term end = 1 + static_cast<Term>(rng.below(5));
        jobs.push_back(request(
            j, std::int64_t{1} << rng.below(3),
            1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(end))), end));
      }
      if (!can_hold(jobs, 4)) continue;
      ++feasible;
      // Laid out in one go: with room for all they enter, then the room is taken away.
      LeasePlan plan{100, {.jobs = 0}};
      for (const LeaseRequest& job : jobs) ASSERT_TRUE(is_admitted(plan.admit(job)));
      found += plan.set_capacity(4) ? 1 : 0;
    }
    EXPECT_NEAR(found / 400.0, expected[n - 2], 0.05) << n << " jobs";
  }
}

}  // namespace
}  // namespace berth::chronus
