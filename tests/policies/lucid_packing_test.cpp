// Lucid's parts: sharing scores, the packing rule with its worked example, the arrival forecast.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/rng.h"
#include "policies/lucid/arrival_forecast.h"
#include "policies/lucid/packing_index.h"
#include "policies/lucid/sharing_score.h"
#include "project_paths.h"

namespace berth::lucid {
namespace {

constexpr double kGib = 1024;
constexpr PoolId kPool{0};

Duration seconds(double s) { return seconds_to_duration(s); }

PackingPartner running(std::uint32_t id, SharingScore score, double gib, double priority) {
  return {.start = seconds_to_time(id),
          .job = JobId{id},
          .pool = kPool,
          .gpus = 1,
          .score = score,
          .memory_left_mib = (24 - gib) * kGib,
          .expected_end = Time{seconds(100 + priority)}};
}

Newcomer waiting(SharingScore score, double gib, double priority) {
  return {.gpus = 1, .score = score, .memory_mib = gib * kGib, .left = seconds(priority)};
}

class WorkedPacking : public ::testing::Test {
 protected:
  void SetUp() override {
    index_.add(running(1, SharingScore::Medium, 10, 4000));
    index_.add(running(2, SharingScore::Tiny, 16, 3000));
  }
  PackingIndex index_;
  Time now_ = seconds_to_time(100);
};

TEST_F(WorkedPacking, ScoresTooHighOrMemoryTooSmall) {
  // with R1 the scores make 3; beside R2 25 GB do not fit into 24
  EXPECT_FALSE(index_.find(kPool, waiting(SharingScore::Jumbo, 9, 5000), now_));
  EXPECT_TRUE(index_.find(kPool, waiting(SharingScore::Jumbo, 8, 5000), now_));
}

TEST_F(WorkedPacking, FirstRunningJobThatSuits) {
  const auto found = index_.find(kPool, waiting(SharingScore::Medium, 6, 5000), now_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->job, JobId{1});  // scores make 2, 16 GB, 5000 <= 8000
}

TEST_F(WorkedPacking, ALongJobIsNotGluedToOneAboutToEnd) {
  EXPECT_FALSE(index_.find(kPool, waiting(SharingScore::Tiny, 6, 9000), now_));  // > 8000, > 6000
  EXPECT_EQ(index_.find(kPool, waiting(SharingScore::Tiny, 6, 8000), now_)->job, JobId{1});
  EXPECT_FALSE(index_.find(kPool, waiting(SharingScore::Tiny, 6, 8000), now_ + seconds(1)))
      << "a second later R1 has 3999 s left";
}

TEST_F(WorkedPacking, LeastScoreIsAnOption) {
  PackingIndex by_score{PackingIndex::Choice::LeastScore};
  by_score.add(running(1, SharingScore::Medium, 10, 4000));
  by_score.add(running(2, SharingScore::Tiny, 16, 3000));
  EXPECT_EQ(by_score.find(kPool, waiting(SharingScore::Medium, 6, 5000), now_)->job, JobId{2});
}

TEST_F(WorkedPacking, OnlyEqualSizesUpToOneServerAndOnePool) {
  Newcomer two = waiting(SharingScore::Tiny, 1, 10);
  two.gpus = 2;
  EXPECT_FALSE(index_.find(kPool, two, now_));
  EXPECT_FALSE(index_.find(PoolId{1}, waiting(SharingScore::Tiny, 1, 10), now_));
  PackingPartner large = running(3, SharingScore::Tiny, 1, 4000);
  large.gpus = 16;
  index_.add(large);
  two.gpus = 16;
  EXPECT_FALSE(index_.find(kPool, two, now_));
}

TEST_F(WorkedPacking, APartnerTakenIsGoneUntilItIsAloneAgain) {
  const PackingPartner first = running(1, SharingScore::Medium, 10, 4000);
  index_.remove(first);
  EXPECT_EQ(index_.find(kPool, waiting(SharingScore::Medium, 6, 5000), now_)->job, JobId{2});
  index_.add(first);
  EXPECT_EQ(index_.find(kPool, waiting(SharingScore::Medium, 6, 5000), now_)->job, JobId{1});
}

TEST(PackingIndex, FindsWhatAScanOfTheRunListFinds) {
  Rng rng{17};
  PackingIndex index;
  std::vector<PackingPartner> list;
  std::uint32_t id = 0;
  for (int step = 0; step < 6000; ++step) {
    const Time now = seconds_to_time(step / 3);
    if (rng.below(3) > 0) {
      PackingPartner partner{.start = now,
                             .job = JobId{id++},
                             .pool = kPool,
                             .gpus = 1 + static_cast<std::int32_t>(rng.below(2)),
                             .score = static_cast<SharingScore>(rng.below(3)),
                             .memory_left_mib = static_cast<double>(rng.below(20)),
                             .expected_end = now + seconds(static_cast<double>(rng.below(400)))};
      index.add(partner);
      list.push_back(partner);
    } else if (!list.empty()) {
      const std::size_t at = rng.below(list.size());
      index.remove(list[at]);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const Newcomer newcomer{.gpus = 1 + static_cast<std::int32_t>(rng.below(2)),
                            .score = static_cast<SharingScore>(rng.below(3)),
                            .memory_mib = static_cast<double>(rng.below(20)),
                            .left = seconds(static_cast<double>(rng.below(700)))};
    const PackingPartner* expected = nullptr;
    for (const PackingPartner& partner : list) {
      const int scores = static_cast<int>(partner.score) + static_cast<int>(newcomer.score);
      if (partner.gpus != newcomer.gpus || scores > 2) continue;
      if (partner.memory_left_mib < newcomer.memory_mib) continue;
      if (newcomer.left > 2 * (partner.expected_end - now)) continue;
      if (expected == nullptr || index.is_before(partner, *expected)) expected = &partner;
    }
    const auto found = index.find(kPool, newcomer, now);
    ASSERT_EQ(found.has_value(), expected != nullptr) << step;
    if (!found) continue;
    ASSERT_EQ(found->job, expected->job) << step;
  }
}

TEST(SharingScore, LabelsByMeanSpeedWhenPacked) {
  EXPECT_EQ(score_from_speed(1.02), SharingScore::Tiny);
  EXPECT_EQ(score_from_speed(0.95), SharingScore::Tiny);
  EXPECT_EQ(score_from_speed(0.94), SharingScore::Medium);
  EXPECT_EQ(score_from_speed(0.85), SharingScore::Medium);
  EXPECT_EQ(score_from_speed(0.84), SharingScore::Jumbo);
}

TEST(SharingScore, TheTreeForWantOfMeasurements) {
  const SharingTree tree = SharingTree::untrained();
  const auto score = [&](double gpu, double memory) {
    return tree.predict({.gpu_utilisation = gpu, .memory_utilisation = memory});
  };
  EXPECT_EQ(score(.29, .09), SharingScore::Tiny);
  EXPECT_EQ(score(.30, .09), SharingScore::Medium);
  EXPECT_EQ(score(.29, .10), SharingScore::Medium);
  EXPECT_EQ(score(.75, .45), SharingScore::Medium);
  EXPECT_EQ(score(.76, .05), SharingScore::Jumbo);
  EXPECT_EQ(score(.10, .46), SharingScore::Jumbo);
}

TEST(SharingScore, ATrainedTreeFindsTheRuleBehindTheSamples) {
  Rng rng{4};
  std::vector<SharingTree::Sample> samples;
  for (int i = 0; i < 300; ++i) {
    const UsageFeatures features{.gpu_utilisation = rng.uniform(),
                                 .memory_utilisation = rng.uniform(),
                                 .memory_mib = rng.uniform() * 20'000};
    const auto score = features.memory_utilisation > 0.5 ? SharingScore::Jumbo
                       : features.gpu_utilisation > 0.4  ? SharingScore::Medium
                                                         : SharingScore::Tiny;
    samples.push_back({features, score});
  }
  const SharingTree tree = SharingTree::trained(samples);
  int wrong = 0;
  for (const auto& sample : samples) wrong += tree.predict(sample.features) == sample.score ? 0 : 1;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(tree.nodes(), 5U) << "two questions are enough";
}

TEST(SharingScore, NothingToLearnFromIsTheDefaultTree) {
  EXPECT_EQ(SharingTree::trained({}).nodes(), SharingTree::untrained().nodes());
}

TEST(SharingScore, LearnsTheMeasuredJobsOfTheAuthors) {
  std::ifstream file{std::string(BERTH_SHARED_DIR) + "/data/lucid/single_data.csv"};
  if (!file) GTEST_SKIP() << "shared data is not here";
  std::vector<SharingTree::Sample> samples;
  std::string line;
  std::getline(file, line);  // model,dataset,batchsize,amp,speed,gpu_util,gmem_util,gmem,label
  while (std::getline(file, line)) {
    std::istringstream cells{line};
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    ASSERT_EQ(row.size(), 9U);
    samples.push_back({{.gpu_utilisation = std::stod(row[5]) / 100,
                        .memory_utilisation = std::stod(row[6]) / 100,
                        .memory_mib = std::stod(row[7]),
                        .mixed_precision = row[3] == "1"},
                       static_cast<SharingScore>(std::stoi(row[8]))});
  }
  ASSERT_EQ(samples.size(), 66U);
  int right = 0;  // each job predicted by a tree that has not seen it
  for (std::size_t i = 0; i < samples.size(); ++i) {
    auto others = samples;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (SharingTree::trained(others).predict(samples[i].features) == samples[i].score) ++right;
  }
  RecordProperty("leave_one_out_right_of_66", right);
  EXPECT_GE(right, 48);  // always the most frequent score: 25
}

TEST(ArrivalForecast, BeforeADayHasPassedTheLastHourCounts) {
  ArrivalForecast forecast;
  EXPECT_EQ(forecast.next_hour(seconds_to_time(0)), 0);
  for (int i = 0; i < 30; ++i) forecast.add(seconds_to_time(i * 60));  // 0:00 to 0:29
  EXPECT_EQ(forecast.next_hour(seconds_to_time(1800)), 30);
  EXPECT_EQ(forecast.next_hour(seconds_to_time(3600 + 1800)), 15);  // half of that hour is over
  EXPECT_EQ(forecast.next_hour(seconds_to_time(3 * 3600)), 0);
}

TEST(ArrivalForecast, KnowsTheBusyHourOfTheDay) {
  ArrivalForecast forecast;
  for (int day = 0; day < 10; ++day) {
    for (int i = 0; i < 60; ++i) forecast.add(seconds_to_time(day * 86400 + 9 * 3600 + i * 60));
  }
  // At nine nothing came in the last hour, but 60 always came in the next.
  EXPECT_EQ(forecast.next_hour(seconds_to_time(10 * 86400 + 9 * 3600)), 30);
  EXPECT_EQ(forecast.next_hour(seconds_to_time(10 * 86400 + 20 * 3600)), 0);
  // A quiet fortnight is forgotten.
  EXPECT_EQ(forecast.next_hour(seconds_to_time(24 * 86400 + 9 * 3600)), 0);
}

}  // namespace
}  // namespace berth::lucid
