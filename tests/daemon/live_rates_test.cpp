// How fast live jobs run: by their reports, by belief, by their request, in this order.
#include <gtest/gtest.h>

#include <map>

#include "daemon/live_rates.h"
#include "model/cluster.h"

namespace berth::test {
namespace {

using namespace std::chrono_literals;

class SaidTraining final : public TrainingChannel {
 public:
  [[nodiscard]] std::optional<TrainingReport> report(JobNumber) const override { return {}; }
  void losses(JobNumber, std::int64_t, std::vector<double>&) const override {}
  [[nodiscard]] bool has_saved(JobNumber) const override { return false; }
  void tell(JobNumber, const Terms&) override {}
  [[nodiscard]] std::optional<MeasuredProgress> progress(JobNumber job) const override {
    const auto found = said.find(job);
    if (found == said.end()) return std::nullopt;
    return found->second;
  }
  void conditions_changed(JobNumber job) override {
    if (const auto found = said.find(job); found != said.end()) found->second.per_second = 0;
  }
  std::map<JobNumber, MeasuredProgress> said;
};

/// Jobs 0 to 2 ask for one device and 100 s; the first has 1,000 iterations.
class LiveRatesTest : public testing::Test {
 protected:
  LiveRatesTest() : cluster_(*load_cluster("1x2")), jobs_(3) {
    slots_.jobs.resize(3);
    for (TraceJob& slot : slots_.jobs) {
      slot.gpus = 1;
      slot.duration = slot.estimate = 100s;
    }
    slots_.jobs[0].iterations = 1000;
    model_.emplace(built_in_profiles(), cluster_, Effects{});
    rates_.emplace(LiveRates::Parts{
        .slots = slots_,
        .believed = *model_,
        .training = &book_,
        .number = [](JobId job) { return JobNumber{job.value + 1}; },
        .whole = [](JobId) { return Duration{100s}; },
        .seconds_per_iteration = [this](JobId) { return learnt_; },
        .shown = [this](JobId job,
                        const ProgressEstimate& progress) { shown_[job.value] = progress; }});
  }
  void run(std::uint32_t job, std::uint64_t devices) {
    const Slice slice{.node = NodeId{0}, .gpus = 1, .devices = devices};
    rates_->enter(JobId{job}, PoolId{0}, {&slice, 1}, LiveRates::Attempt::New);
    jobs_.state[JobId{job}] = JobState::Running;
    jobs_.granted[JobId{job}] = 1;
    jobs_.rate[JobId{job}] = Rate::one();
    jobs_.basis[JobId{job}] = RateBasis::Believed;
    jobs_.work_from[JobId{job}] = now_;
  }
  /// As the engine does.
  std::size_t absorb() {
    changes_.clear();
    rates_->rates(now_, jobs_, changes_);
    for (const auto& [job, rate, work, basis, begun] : changes_) {
      jobs_.work[job] = work.value_or(jobs_.work_done(job, now_));
      jobs_.work_from[job] = now_;
      jobs_.rate[job] = rate;
      jobs_.basis[job] = basis;
      if (basis != RateBasis::Measured) jobs_.basis_from[job] = now_;
    }
    return changes_.size();
  }
  double rate(std::uint32_t job) { return jobs_.rate[JobId{job}].value(); }
  double done(std::uint32_t job) { return to_seconds(jobs_.work_done(JobId{job}, now_)); }
  void say(std::uint32_t job, MeasuredProgress progress) {
    book_.said[job + 1] = progress;
    rates_->update(JobId{job});
  }

  Cluster cluster_;
  Trace slots_;
  JobTable jobs_;
  SaidTraining book_;
  std::optional<RateModel> model_;
  std::optional<LiveRates> rates_;
  std::map<std::uint32_t, ProgressEstimate> shown_;
  std::optional<double> learnt_;  // seconds of an iteration
  std::vector<RateChange> changes_;
  Time now_{1000s};
};

TEST_F(LiveRatesTest, WhoSaysNothingRunsAsItsRequestSays) {
  run(0, 1);
  absorb();
  EXPECT_EQ(rate(0), 1);
  EXPECT_EQ(shown_[0].source, RateSource::Request);
  now_ += 30s;
  EXPECT_EQ(done(0), 30);
}

// Nothing is known of the two: 1.5 times as long beside each other.
TEST_F(LiveRatesTest, WhoSharesADeviceIsBelievedToBeSlower) {
  run(0, 1);
  absorb();
  now_ += 30s;
  run(1, 1);
  absorb();
  EXPECT_NEAR(rate(0), 1 / 1.5, 1e-6);
  EXPECT_NEAR(rate(1), 1 / 1.5, 1e-6);
  EXPECT_EQ(shown_[0].source, RateSource::Belief);
  now_ += 30s;
  EXPECT_NEAR(done(0), 30 + 20, 1e-3);
  rates_->leave(JobId{1});
  absorb();
  EXPECT_EQ(rate(0), 1);
}

// 1,000 iterations and 100 s are ten a second; it makes five.
TEST_F(LiveRatesTest, WhoReportsIsBelieved) {
  run(0, 1);
  absorb();
  now_ += 40s;
  say(0, {.iterations = 200, .per_second = 5});
  absorb();
  EXPECT_EQ(rate(0), 0.5);
  EXPECT_NEAR(done(0), 20, 1e-6);  // 200 of 1,000, not 40 s of 100
  EXPECT_EQ(shown_[0].source, RateSource::Reports);
  EXPECT_DOUBLE_EQ(shown_[0].rate, 0.5);
  EXPECT_DOUBLE_EQ((shown_[0].whole_seconds - shown_[0].work_seconds) / shown_[0].rate, 160);
}

// because orders by rate would have as many classes as there are reports
TEST_F(LiveRatesTest, NoiseChangesNothing) {
  run(0, 1);
  absorb();
  now_ += 40s;
  say(0, {.iterations = 200, .per_second = 5});
  EXPECT_EQ(absorb(), 1U);
  for (int i = 1; i < 20; ++i) {
    now_ += 1s;
    say(0, {.iterations = 200 + 5.0 * i, .per_second = i % 2 == 0 ? 5.1 : 4.9});
    EXPECT_EQ(absorb(), 0U);
  }
}

// Beside somebody it is believed to take 1.5 times as long, until it says what it really does.
TEST_F(LiveRatesTest, OtherConditionsAreBelievedUntilTheyAreMeasured) {
  run(0, 1);
  say(0, {.iterations = 100, .per_second = 5});
  absorb();
  run(1, 1);
  absorb();
  EXPECT_NEAR(rate(0), 0.5 / 1.5, 0.02);
  say(0, {.iterations = 120, .per_second = 4});
  absorb();
  EXPECT_NEAR(rate(0), 0.4, 0.02);
}

// A policy that judges by a rate has to know whether it was tested, and since when.
TEST_F(LiveRatesTest, TheTableSaysWhetherARateIsMeasured) {
  run(0, 1);
  absorb();
  EXPECT_EQ(jobs_.basis[JobId{0}], RateBasis::Believed);
  now_ += 2s;
  say(0, {.iterations = 10, .per_second = 0});  // its first word
  absorb();
  EXPECT_EQ(jobs_.basis[JobId{0}], RateBasis::Awaited);
  say(0, {.iterations = 100, .per_second = 10});  // as fast as was believed: news all the same
  EXPECT_EQ(absorb(), 1U);
  EXPECT_EQ(jobs_.basis[JobId{0}], RateBasis::Measured);
  now_ += 5s;
  run(1, 1);
  absorb();
  EXPECT_EQ(jobs_.basis[JobId{0}], RateBasis::Awaited);
  EXPECT_EQ(jobs_.basis_from[JobId{0}], now_);
  EXPECT_EQ(jobs_.basis[JobId{1}], RateBasis::Believed);
}

// Beside the second and beside the third the same is believed of it. What it does beside the third
// is not known before it was measured there.
TEST_F(LiveRatesTest, AnotherNeighbourIsAnotherCondition) {
  run(0, 1);
  run(1, 1);
  absorb();
  say(0, {.iterations = 120, .per_second = 4});
  absorb();
  EXPECT_EQ(jobs_.basis[JobId{0}], RateBasis::Measured);
  const double before = rate(0);
  rates_->leave(JobId{1});
  jobs_.state[JobId{1}] = JobState::Waiting;
  run(2, 1);
  absorb();
  EXPECT_EQ(rate(0), before);
  EXPECT_EQ(jobs_.basis[JobId{0}], RateBasis::Awaited);
  EXPECT_EQ(book_.said[1].per_second, 0);  // the pace so far is forgotten
}

// because what it says cannot be: from then on it counts as silent
TEST_F(LiveRatesTest, WhoIsNotBelievedAnyMoreIsNotMeasuredEither) {
  run(0, 1);
  say(0, {.iterations = 120, .per_second = 4});
  absorb();
  book_.said.clear();
  rates_->update(JobId{0});
  absorb();
  EXPECT_EQ(jobs_.basis[JobId{0}], RateBasis::Believed);
}

// It does not say how many iterations it has: the first pace is that of its request.
TEST_F(LiveRatesTest, WithoutAWholeThePaceAloneIsTheMeasure) {
  run(1, 2);
  absorb();
  now_ += 20s;
  say(1, {.iterations = 140, .per_second = 7});
  absorb();
  EXPECT_EQ(rate(1), 1);
  EXPECT_NEAR(done(1), 20, 0.5);
  run(0, 2);
  absorb();
  say(1, {.iterations = 150, .per_second = 3.5});
  absorb();
  EXPECT_NEAR(rate(1), 0.5, 0.5 * 0.005);  // as far as it is known
}

// 1,000 iterations in 100 s, but jobs of its kind take 0.2 s for each.
TEST_F(LiveRatesTest, WhatItsKindHasShownCountsBeforeItReports) {
  learnt_ = 0.2;
  run(0, 1);
  absorb();
  EXPECT_EQ(rate(0), 0.5);
  EXPECT_EQ(shown_[0].source, RateSource::Belief);
  now_ += 10s;
  say(0, {.iterations = 100, .per_second = 10});  // this one is as fast as it said
  absorb();
  EXPECT_EQ(rate(0), 1);
}

TEST_F(LiveRatesTest, WorkGoesBackToTheCheckpoint) {
  run(0, 1);
  now_ += 50s;
  say(0, {.iterations = 500, .per_second = 10});
  absorb();
  EXPECT_NEAR(done(0), 50, 0.1);
  rates_->leave(JobId{0});
  book_.said.clear();
  jobs_.work[JobId{0}] = jobs_.work_done(JobId{0}, now_);
  run(0, 2);
  absorb();
  now_ += 5s;
  say(0, {.iterations = 310, .per_second = 0});  // it had saved at 300
  absorb();
  EXPECT_NEAR(done(0), 31, 0.1);
}

// Whatever a job says, the table has a number that a policy can bear.
TEST_F(LiveRatesTest, TheTableHasLimits) {
  run(0, 1);
  say(0, {.iterations = 1e15, .per_second = 1e9});
  absorb();
  EXPECT_LE(rate(0), 1e4 * 1.05);
  say(0, {.iterations = 1, .per_second = 1e-12});
  absorb();
  EXPECT_GE(rate(0), 1e-4 / 1.05);
}

}  // namespace
}  // namespace berth::test
