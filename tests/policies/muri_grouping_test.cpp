// Muri's grouping: admission, worked matchings, when merging stops, and how far matching by classes
// stays behind the optimum.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "policies/muri/grouping.h"

namespace berth::muri {
namespace {

constexpr StageTimes A{4, 2, 1, 1}, B{1, 1, 4, 2}, C{1, 4, 2, 1}, D{1, 1, 1, 5};

std::vector<Candidate> one_gpu_each(const std::vector<StageTimes>& all) {
  std::vector<Candidate> candidates;
  for (const StageTimes& stages : all)
    candidates.push_back({.gpus = 1, .bucket = 1, .stages = stages});
  return candidates;
}

std::vector<std::vector<std::uint32_t>> members(const std::vector<Group>& groups) {
  std::vector<std::vector<std::uint32_t>> result;
  for (const Group& group : groups)
    result.emplace_back(group.members().begin(), group.members().end());
  return result;
}

using Sets = std::vector<std::vector<std::uint32_t>>;

TEST(MuriAdmission, StopsAtTheFirstJobBeyondFourTimesTheGpus) {
  std::vector<Candidate> candidates{
      {4, 4, A, 0, 0}, {8, 8, A, 0, 0}, {3, 3, A, 0, 0}, {2, 2, A, 0, 0}, {1, 1, A, 0, 0}};
  EXPECT_EQ(admitted(candidates, 4), 3U);  // 4 + 8 + 3 = 15; the next makes 17 > 16
  EXPECT_EQ(admitted(candidates, 5), 5U);
  EXPECT_EQ(admitted(candidates, 0), 0U);
}

TEST(Grouping, NobodySharesWhileAllFit) {
  const auto candidates = one_gpu_each({A, B, C, D});
  EXPECT_EQ(members(group_jobs(candidates, 4)), (Sets{{0}, {1}, {2}, {3}}));
}

TEST(Grouping, TakesAMatchingOfTheMostEfficientPairs) {
  const auto groups = group_jobs(one_gpu_each({A, B, C, D}), 2);
  ASSERT_EQ(groups.size(), 2U);
  double efficiency = 0;
  for (const Group& group : groups) efficiency += group.interleaving.efficiency;
  EXPECT_NEAR(efficiency, .944444, 1e-6);  // {AC, BD} or {AD, BC}, never {AB, CD} with .727273
  EXPECT_NE(members(groups), (Sets{{0, 1}, {2, 3}}));
}

// Every pair weighs the same, so as many as there can be are the optimum; ties go to the better
// key.
TEST(Grouping, AlikeJobsArePairedInPolicyOrder) {
  constexpr StageTimes kEven{2, 2, 2, 2};
  const auto candidates = one_gpu_each({kEven, kEven, kEven, kEven, kEven, kEven, kEven});
  EXPECT_EQ(members(group_jobs(candidates, 4)), (Sets{{0, 1}, {2, 3}, {4, 5}, {6}}));
  // Two rounds: pairs, then pairs of pairs; the odd one goes where the matching wants it.
  const auto groups = group_jobs(candidates, 2);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].members().size() + groups[1].members().size(), 7U);
}

TEST(Grouping, MergesNoMoreThanNeeded) {
  // one GPU too few: only the best pair shares (AC and BC weigh .5; the matching holds one of them)
  const auto groups = group_jobs(one_gpu_each({A, B, C, D}), 3);
  ASSERT_EQ(groups.size(), 3U);
  for (const Group& group : groups) {
    if (group.interleaving.jobs == 1) continue;
    EXPECT_NEAR(group.interleaving.efficiency, .5, 1e-12);
  }
}

TEST(Grouping, FourOnOneGpuAfterTwoRounds) {
  const auto groups = group_jobs(one_gpu_each({A, B, C, D}), 1);
  ASSERT_EQ(members(groups), (Sets{{0, 1, 2, 3}}));
  EXPECT_EQ(groups[0].interleaving.seconds, 9);
  EXPECT_NEAR(groups[0].interleaving.efficiency, 8.0 / 9, 1e-12);
}

TEST(Grouping, OnlyEqualSizesShare) {
  std::vector<Candidate> candidates{
      {2, 2, A, 0, 0}, {1, 1, C, 0, 0}, {2, 2, C, 0, 0}, {1, 1, A, 0, 0}};
  EXPECT_EQ(members(group_jobs(candidates, 3)), (Sets{{0, 2}, {1, 3}}));
}

TEST(Grouping, PairsThatLoseThroughputStayApart) {
  const StageTimes quick{1, 1, 1, 1}, slow{10, 10, 10, 10};
  EXPECT_EQ(members(group_jobs(one_gpu_each({quick, slow}), 1)), (Sets{{0}, {1}}));
  // two alike gain without overhead and lose with the measured one when they want one resource only
  const StageTimes gpu{0, 0, 6, 0};
  EXPECT_EQ(group_jobs(one_gpu_each({gpu, gpu}), 1).size(), 1U);
  EXPECT_EQ(group_jobs(one_gpu_each({gpu, gpu}), 1, {.overhead = kMeasuredOverhead}).size(), 2U);
}

TEST(Grouping, NobodySharesADeviceTooSmallForBoth) {
  auto candidates = one_gpu_each({A, B, C, D});
  for (Candidate& each : candidates) {
    each.memory_mib = 6000;
    each.device_memory_mib = 16'000;
  }
  for (const Group& group : group_jobs(candidates, 1)) EXPECT_EQ(group.members().size(), 2U);
  candidates[0].memory_mib = 11'000;
  for (const Group& group : group_jobs(candidates, 1)) {
    if (group.member[0] != 0) continue;
    EXPECT_EQ(group.members().size(), 1U);
  }
}

StageTimes random_stages(Rng& rng) {
  // one resource dominates, lengths within a factor of four: what real models look like
  StageTimes stages{};
  const double length = 0.1 + 0.3 * rng.uniform();
  for (double& stage : stages) stage = 0.1 * length * rng.uniform();
  stages[rng.below(kStages)] += length * (0.5 + 0.5 * rng.uniform());
  return stages;
}

double total(const std::vector<Merge>& merges) {
  double sum = 0;
  for (const Merge& merge : merges) sum += merge.interleaving.efficiency;
  return sum;
}

TEST(Grouping, MatchingByClassStaysCloseToTheOptimum) {
  double exact = 0, by_class = 0, worst = 1;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng{seed};
    std::vector<StageTimes> stages(80);
    for (StageTimes& each : stages) each = random_stages(rng);
    const auto candidates = one_gpu_each(stages);
    const auto alone = group_jobs(candidates, 80);
    const double best = total(match_exactly(candidates, alone, {}));
    const double found = total(match_by_class(candidates, alone, {}));
    EXPECT_LE(found, best + 1e-6);
    exact += best;
    by_class += found;
    worst = std::min(worst, found / best);
  }
  RecordProperty("efficiency_share_of_optimum", std::to_string(by_class / exact));
  RecordProperty("worst_share_of_optimum", std::to_string(worst));
  EXPECT_GE(by_class / exact, 0.90);
  EXPECT_GE(worst, 0.5);  // the guarantee of a greedy matching
}

TEST(Grouping, ThousandsOfJobsAreGroupedByClass) {
  Rng rng{5};
  std::vector<StageTimes> stages(20'000);
  for (StageTimes& each : stages) each = random_stages(rng);
  const auto groups = group_jobs(one_gpu_each(stages), 6'000);
  std::vector<bool> seen(stages.size());
  for (const Group& group : groups) {
    EXPECT_LE(group.members().size(), kMaxInterleaved);
    for (const std::uint32_t member : group.members()) {
      EXPECT_FALSE(seen[member]);
      seen[member] = true;
    }
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](bool is_seen) { return is_seen; }));
  EXPECT_LE(groups.size(), 10'000U);
}

}  // namespace
}  // namespace berth::muri
