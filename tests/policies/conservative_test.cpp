// Conservative backfill: the worked trace, what is promised and kept, and the capacity profile
// below it against a naive one.
#include "policies/conservative/conservative.h"

#include <gtest/gtest.h>

#include <array>

#include "policies/conservative/capacity_profile.h"
#include "policies/stress.h"
#include "support/random_scenario.h"
#include "support/run.h"

namespace berth::test {
namespace {

using namespace conservative;

Time at(std::int64_t tick) { return Time{Duration{tick}}; }

// --- the profile

constexpr std::int64_t kHorizon = 60;

/// The same function as an array of ticks; the last one stands for all the time after it.
struct NaiveProfile {
  std::array<std::int64_t, kHorizon> level{};
  void add(std::int64_t from, std::int64_t to, std::int64_t change) {
    for (std::int64_t t = from; t < to; ++t) level[static_cast<std::size_t>(t)] += change;
  }
  [[nodiscard]] std::int64_t get(std::int64_t t) const {
    return level[static_cast<std::size_t>(std::min(t, kHorizon - 1))];
  }
  [[nodiscard]] Time fit(std::int64_t from, std::int64_t before, std::int64_t length,
                         std::int64_t gpus) const {
    for (std::int64_t start = from; start < std::min(before, kHorizon); ++start) {
      bool fits = true;
      for (std::int64_t t = start; t < start + length; ++t) fits = fits && get(t) >= gpus;
      if (fits) return at(start);
    }
    return kNever;
  }
};

TEST(CapacityProfile, AnswersLikeAnArrayOfTicks) {
  Rng rng{7};
  for (int round = 0; round < 200; ++round) {
    CapacityProfile profile{8};
    NaiveProfile naive;
    naive.add(0, kHorizon, 8);
    std::int64_t now = 0;
    for (int step = 0; step < 60; ++step) {
      const auto from =
          now + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(kHorizon - now)));
      const auto to =
          from + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(kHorizon - from)));
      const auto change = static_cast<std::int64_t>(rng.below(7)) - 3;
      const bool for_ever = rng.below(10) == 0;
      profile.add(at(from), for_ever ? kNever : at(to), change);
      naive.add(from, for_ever ? kHorizon : to, change);
      if (rng.below(20) == 0) {
        now = std::min<std::int64_t>(now + 3, kHorizon - 2);
        profile.forget_before(at(now));
      }
      std::int64_t least = naive.get(now);
      for (std::int64_t t = now; t < kHorizon; ++t) {
        ASSERT_EQ(profile.at(at(t)), naive.get(t)) << "tick " << t;
        least = std::min(least, naive.get(t));
      }
      ASSERT_EQ(profile.least(), least);
      const auto length = static_cast<std::int64_t>(1 + rng.below(9));
      const auto gpus = static_cast<std::int64_t>(rng.below(12));
      const auto before = now + static_cast<std::int64_t>(rng.below(80));
      ASSERT_EQ(profile.earliest_fit(at(now), at(before), Duration{length}, gpus),
                naive.fit(now, before, length, gpus));
    }
  }
}

TEST(CapacityProfile, KeepsNoStepThatChangesNothing) {
  CapacityProfile profile{4};
  profile.add(at(10), at(20), -2);
  profile.add(at(20), at(30), -2);
  EXPECT_EQ(profile.steps(), 3U);  // 4 | 2 from 10 | 4 from 30: the two stretches are one
  profile.add(at(10), at(30), 2);
  EXPECT_EQ(profile.steps(), 1U);
}

// --- the policy

TEST(Conservative, FinishesT6AtTheWorkedTimes) {
  const Outcome outcome = run({.policy = "conservative", .cluster = "1x4", .jobs = t6()});
  EXPECT_EQ(outcome.finish, (std::vector<double>{10, 14, 21, 33, 32, 9}));
  EXPECT_EQ(outcome.sum_jct, 104);
  EXPECT_EQ(outcome.makespan, 33);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

TEST(Conservative, CompressesWhenAJobEndsEarly) {
  // J1 says 20 s but ends at 5; J2 was promised 20, J3 (4 GPUs) 30. Both move up.
  const Outcome outcome = run({.policy = "conservative",
                               .cluster = "1x4",
                               .estimator = "limit",
                               .jobs = {{.submit = 0, .gpus = 4, .duration = 5, .estimate = 20},
                                        {.submit = 1, .gpus = 2, .duration = 10, .estimate = 10},
                                        {.submit = 2, .gpus = 4, .duration = 1, .estimate = 1}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 5, 15}));
}

TEST(Conservative, DoesNotCompressWhenEverythingEndsOnTime) {
  Conservative policy{1000};
  const Outcome outcome = run_with({.cluster = "1x4", .jobs = t6()}, policy);
  EXPECT_EQ(outcome.makespan, 33);
  EXPECT_EQ(policy.compressions(), 0U);
}

TEST(Conservative, WakesUpForAReservationThatNoEventMarks) {
  // J2 (est 10) is promised 10 when J1 ends; J3 (1 GPU, est 12) 20, behind J2. J1 ends at 4: J2
  // moves to 4..14 and J3 to 14. J2 is cancelled by nobody but ends at 14 as believed, so J3 starts
  // then.
  const Outcome outcome = run({.policy = "conservative",
                               .cluster = "1x4",
                               .estimator = "limit",
                               .jobs = {{.submit = 0, .gpus = 3, .duration = 4, .estimate = 10},
                                        {.submit = 1, .gpus = 4, .duration = 10, .estimate = 10},
                                        {.submit = 2, .gpus = 1, .duration = 12, .estimate = 12}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 4, 14}));
}

TEST(Conservative, AJobThatOutlivesItsEstimatePushesTheOthersInOrder) {
  // J1 says 5 s and runs 8. J2 and J3 need everything and were promised 5 and 15: J2 keeps its
  // turn.
  const Outcome outcome = run({.policy = "conservative",
                               .cluster = "1x4",
                               .estimator = "limit",
                               .jobs = {{.submit = 0, .gpus = 4, .duration = 8, .estimate = 5},
                                        {.submit = 1, .gpus = 4, .duration = 10, .estimate = 10},
                                        {.submit = 2, .gpus = 4, .duration = 10, .estimate = 10},
                                        {.submit = 6, .gpus = 1, .duration = 1, .estimate = 1}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 8, 18, 28}));
}

TEST(Conservative, TakesTheEarliestStartOverAcceptablePools) {
  // Both pools are full; the second frees first, so the job that prefers the first goes there.
  const Outcome outcome =
      run({.policy = "conservative",
           .cluster = "1x4:a100,1x4:v100",
           .jobs = {{.submit = 0, .gpus = 4, .duration = 20, .type = "a100"},
                    {.submit = 0, .gpus = 4, .duration = 10, .type = "v100"},
                    {.submit = 1, .gpus = 2, .duration = 5, .type = "a100|v100"},
                    {.submit = 2, .gpus = 4, .duration = 5, .type = "a100"}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 10, 20}));
}

TEST(Conservative, AJobPastTheCapHasNoReservationAndDelaysNobody) {
  // With one reservation only J2 is planned; J3 gets its own when J2 has started, so the hole
  // at 1..10 that J4 would fit into stays empty until then.
  const Outcome outcome = run({.policy = "conservative",
                               .settings = {{"max_reservations", "1"}},
                               .cluster = "1x4",
                               .jobs = {{0, 3, 10}, {1, 4, 5}, {2, 4, 5}, {3, 1, 2}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 10, 15, 20}));
}

TEST(Conservative, ADueJobWithoutAPlaceKeepsItsTurn) {
  // Two nodes of 4 with 1 free each: J3 needs 2 on one node, so it is due at once by count but has
  // no place. At 10 J1's node is free; J3 goes first, and J4, which was promised 10 there, follows
  // at 13.
  const Outcome outcome = run({.policy = "conservative",
                               .cluster = "2x4",
                               .placement = "consolidated",
                               .jobs = {{0, 3, 10}, {0, 3, 20}, {1, 2, 3}, {2, 4, 30}}});
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 0, 10, 13}));
}

TEST(Conservative, PlansAgainWhenANodeIsLostAndReturns) {
  // 2 x 4. J2 needs both nodes; node 1 is down from 5 to 30, so nothing can be promised until then.
  Scenario scenario{
      .policy = "conservative", .cluster = "2x4", .jobs = {{0, 4, 10}, {1, 8, 5}, {2, 2, 4}}};
  scenario.sim.outages = {{NodeId{1}, seconds_to_time(5), seconds_to_time(30)}};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.start, (std::vector<double>{0, 30, 2}));
}

/// Conservative backfill by the book: the profile is an array of seconds, written anew for every
/// question.
class NaiveConservative final : public Policy {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "naive-conservative"; }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return {.needs = Need::RunTime}; }
  void on_arrival(const View&, JobId job) override { new_.push_back(job); }
  void on_departure(const View& view, JobId job) override {
    const auto ended = std::ranges::find(running_, job, &Held::job);
    early_ = early_ || ended->start + length(view, job) > seconds(view.now);
    running_.erase(ended);
  }
  void decide(const View& view, Plan& plan, Rng&) override {
    if (early_) {
      for (Held& each : waiting_) {
        const std::int64_t own = std::exchange(each.start, kAway);
        each.start = std::min(own, fit(view, each.job));
      }
    }
    early_ = false;
    for (const JobId job : std::exchange(new_, {})) waiting_.push_back({job, fit(view, job)});
    std::erase_if(waiting_, [&](const Held& each) {
      if (each.start != seconds(view.now)) return false;
      EXPECT_TRUE(plan.try_start(each.job));
      running_.push_back(each);
      return true;
    });
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    if (waiting_.empty()) return std::nullopt;
    return view.now + std::chrono::seconds{1};
  }

 private:
  struct Held {
    JobId job;
    std::int64_t start;
  };
  static constexpr std::int64_t kAway = -1;
  [[nodiscard]] static std::int64_t seconds(Time time) {
    return time.time_since_epoch() / std::chrono::seconds{1};
  }
  [[nodiscard]] static std::int64_t length(const View& view, JobId job) {
    return view.estimate(job) / std::chrono::seconds{1};
  }
  [[nodiscard]] std::int64_t fit(const View& view, JobId job) const {
    const auto is_free = [&](std::int64_t start) {
      for (std::int64_t t = start; t < start + length(view, job); ++t) {
        std::int64_t used = view.gpus(job);
        for (const auto* held : {&running_, &waiting_}) {
          for (const Held& each : *held) {
            const bool there =
                each.start != kAway && each.start <= t && t < each.start + length(view, each.job);
            used += there ? view.gpus(each.job) : 0;
          }
        }
        if (used > view.cluster.usable_gpus()) return false;
      }
      return true;
    };
    std::int64_t start = seconds(view.now);
    while (!is_free(start)) ++start;
    return start;
  }
  std::vector<JobId> new_;
  std::vector<Held> waiting_;
  std::vector<Held> running_;
  bool early_ = false;
};

TEST(Conservative, PlansLikeTheBookWithExactAndLongEstimates) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Scenario scenario = random_scenario(seed, {.max_jobs = 25});
    scenario.estimator = seed % 3 == 0 ? "oracle" : "limit";
    NaiveConservative naive;
    Conservative policy{1000};
    ASSERT_EQ(run_with(scenario, policy).start, run_with(scenario, naive).start) << "seed " << seed;
  }
}

std::vector<JobSpec> random_jobs(Rng& rng, int count) {
  std::vector<JobSpec> jobs;
  double submit = 0;
  for (int i = 0; i < count; ++i) {
    const double duration = static_cast<double>(1 + rng.below(40));
    jobs.push_back(
        {.submit = submit,
         .gpus = static_cast<int>(1 + rng.below(8)),
         .duration = duration,
         .estimate = duration + static_cast<double>(rng.below(3) == 0 ? 0 : rng.below(30))});
    submit += static_cast<double>(rng.below(8));
  }
  return jobs;
}

class KeepsItsPromises : public ::testing::TestWithParam<std::string> {};

// As long as no job outlives its estimate: exact estimates, and estimates that are too long.
TEST_P(KeepsItsPromises, StartsNoJobLaterThanFirstPromised) {
  Rng rng{11};
  for (int round = 0; round < 150; ++round) {
    const std::vector<JobSpec> jobs = random_jobs(rng, 60);
    Conservative policy{static_cast<std::size_t>(round % 3 == 0 ? 5 : 1000)};
    const Outcome outcome =
        run_with({.cluster = "2x4", .estimator = GetParam(), .jobs = jobs}, policy);
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {  // submits rise, so job i is row i
      ASSERT_LE(outcome.start[i], to_seconds(policy.first_promise(JobId{i})))
          << "round " << round << " job " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Estimates, KeepsItsPromises, ::testing::Values("oracle", "limit"));

TEST(Conservative, CopesWithManyWaitingJobs) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 100'000; ++i)
    jobs.push_back({.submit = 0, .gpus = 1 + i % 7, .duration = 1.0 + i % 90});
  const Outcome outcome = run({.policy = "conservative",
                               .settings = {{"max_reservations", "100"}},
                               .cluster = "64x8",
                               .jobs = jobs});
  EXPECT_EQ(std::ranges::count(outcome.state, JobState::Completed), 100'000);
}

TEST(Conservative, SurvivesRandomWorlds) {
  survive({.policy = "conservative"});
  survive(
      {.policy = "conservative", .settings = {{"max_reservations", "4"}}, .estimator = "limit"});
  survive({.policy = "conservative", .estimator = "oracle:0.8"});
}

}  // namespace
}  // namespace berth::test
