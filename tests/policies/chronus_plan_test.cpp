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
  EXPECT_DOUBLE_EQ(best_selection(jobs, capacity, {})->reward, 2);

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

// Trying everything, for few jobs and terms: a job at a time, every set of its terms.
bool can_hold(std::span<const LeaseRequest> jobs, std::vector<std::int64_t>& used,
              std::int64_t capacity) {
  if (jobs.empty()) return true;
  const LeaseRequest& job = jobs.front();
  for (unsigned set = 0; set < 1U << job.end; ++set) {
    if (std::popcount(set) != job.leases) continue;
    bool fits = true;
    for (Term t = 0; t < job.end; ++t) {
      if ((set >> t & 1U) != 0)
        fits = fits && used[static_cast<std::size_t>(t)] + job.gpus <= capacity;
    }
    if (!fits) continue;
    const auto add = [&](std::int64_t gpus) {
      for (Term t = 0; t < job.end; ++t) {
        if ((set >> t & 1U) != 0) used[static_cast<std::size_t>(t)] += gpus;
      }
    };
    add(job.gpus);
    if (can_hold(jobs.subspan(1), used, capacity)) return true;
    add(-job.gpus);
  }
  return false;
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
      std::vector<std::int64_t> used(6);
      const Verdict verdict = plan.admit(job);
      ASSERT_EQ(is_admitted(verdict), can_hold(all, used, 4)) << "round " << round << " job " << j;
      replanned += verdict == Verdict::Replanned ? 1 : 0;
      searched += verdict == Verdict::Searched ? 1 : 0;
      refused += is_admitted(verdict) ? 0 : 1;
      if (is_admitted(verdict)) admitted = all;
      expect_sound(plan, admitted);
    }
  }
  EXPECT_GT(replanned, 0);
  EXPECT_GT(searched, 0);
  EXPECT_GT(refused, 0);
}

// Without the exact step earliest deadline first alone still finds most feasible sets.
TEST(LeasePlan, FindsThePublishedShareOfFeasibleSetsWithoutTheSearch) {
  const std::vector<double> expected{1.00, 0.95, 0.87};
  Rng rng{11};
  for (std::size_t n = 2; n <= 4; ++n) {
    int feasible = 0, found = 0;
    while (feasible < 400) {
      std::vector<LeaseRequest> jobs;
      for (std::uint32_t j = 0; j < n; ++j) {
        const Term end = 1 + static_cast<Term>(rng.below(5));
        jobs.push_back(request(
            j, std::int64_t{1} << rng.below(3),
            1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(end))), end));
      }
      std::vector<std::int64_t> used(6);
      if (!can_hold(jobs, used, 4)) continue;
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
