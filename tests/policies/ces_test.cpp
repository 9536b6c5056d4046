// Cluster energy saving: the control rule on the series of its specification, the forecast, and
// nodes that really go off and on in runs.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "policies/power/ces.h"
#include "policies/power/power_managers.h"
#include "support/run.h"

namespace berth::test {
namespace {

constexpr CesRule kPaper{.history = 3,
                         .future = 3,
                         .fallen = 1,
                         .forecast_below = 1,
                         .buffer = 5,
                         .keep = 4,
                         .least_step = 1,
                         .warm_up = 3};

/// Runs the control over a series with a perfect forecast; `after` is the demand past its end.
std::vector<int> active_over(const std::vector<double>& used, double after, CesRule rule = kPaper) {
  CesControl control{100, rule};
  std::vector<int> active;
  for (std::size_t i = 0; i < used.size(); ++i) {
    std::vector<double> forecast;
    for (std::size_t h = 0; h < static_cast<std::size_t>(2 * rule.future); ++h)
      forecast.push_back(i + h < used.size() ? used[i + h] : after);
    active.push_back(control.tick(used[i], forecast));
  }
  return active;
}

const std::vector<double> kFallAndRise{80, 80, 82, 84, 86, 88, 88, 84, 80, 76,
                                       72, 68, 66, 64, 62, 60, 60, 64, 72, 80};

TEST(CesControl, FollowsTheSeriesThatFallsAndRises) {
  const std::vector<int> active = active_over(kFallAndRise, 80);
  EXPECT_EQ(active, (std::vector<int>{85, 85, 87, 87, 87, 93, 93, 93, 93, 81,
                                      77, 73, 71, 71, 71, 71, 71, 71, 77, 85}));
  double off = 0, before = 0, after = 0;
  for (std::size_t i = 0; i < active.size(); ++i) {
    off += 100 - active[i];
    before += kFallAndRise[i] / 100;
    after += kFallAndRise[i] / active[i];
  }
  EXPECT_DOUBLE_EQ(off / 20, 18.9);
  EXPECT_NEAR(before / 20, 0.748, 1e-9);
  EXPECT_NEAR(after / 20, 0.9206, 5e-5);
  const double sum_active = std::accumulate(active.begin(), active.end(), 0.0);
  EXPECT_NEAR(100 * before / sum_active, 0.9223, 5e-5) << "sum over sum";
}

TEST(CesControl, StaysOnWhenDemandIsAboutToRiseAgain) {
  std::vector<double> used(kFallAndRise.begin(), kFallAndRise.begin() + 10);
  used.insert(used.end(), {72, 70, 70, 76, 82, 86});
  const std::vector<int> active = active_over(used, 86);
  EXPECT_EQ(active[9], 93);
  EXPECT_EQ(active[10], 93);
}

TEST(CesControl, NeverBelowDemandNorAboveTheTotalAndOffOnlyIfTheForecastAllowsIt) {
  Rng rng{4};
  CesRule never = kPaper;
  never.forecast_below = 1e9;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> used;
    double level = 50;
    for (int i = 0; i < 60; ++i) {
      level = std::clamp(level + static_cast<double>(rng.below(21)) - 10, 0.0, 100.0);
      used.push_back(level);
    }
    const std::vector<int> active = active_over(used, 50);
    const std::vector<int> kept = active_over(used, 50, never);
    for (std::size_t i = 0; i < used.size(); ++i) {
      ASSERT_GE(active[i], used[i]);
      ASSERT_LE(active[i], 100);
      if (i >= 4) {
        ASSERT_GE(kept[i], kept[i - 1]) << "nothing is switched off";
      }
    }
  }
}

/// Working days of ten hours, quiet week-ends.
double office_hours(std::int64_t tick) {
  const std::int64_t hour = tick % DemandForecast::kTicksPerDay / DemandForecast::kTicksPerHour;
  const std::int64_t day = tick % DemandForecast::kTicksPerWeek / DemandForecast::kTicksPerDay;
  return day < 5 && hour >= 8 && hour < 18 ? 80 : 20;
}

TEST(DemandForecast, WithoutAWeekBehindItItIsNowAndThenHalfOfAWeekAgo) {
  DemandForecast forecast{DemandForecast::Method::Naive};
  forecast.add(10);
  std::array<double, 2> next{};
  forecast.predict(next);
  EXPECT_EQ(next[1], 10);
  for (std::int64_t tick = 1; tick < DemandForecast::kTicksPerWeek; ++tick) forecast.add(30);
  forecast.predict(next);
  EXPECT_EQ(next[1], 0.5 * 30 + 0.5 * 10) << "the next tick is a week after the first";
}

TEST(DemandForecast, TreesLearnTheRhythmOfTheWeek) {
  DemandForecast trees{DemandForecast::Method::Trees};
  DemandForecast naive{DemandForecast::Method::Naive};
  for (std::int64_t tick = 0; tick < 4 * DemandForecast::kTicksPerWeek; ++tick) {
    trees.add(office_hours(tick));
    naive.add(office_hours(tick));
  }
  ASSERT_TRUE(trees.error() && naive.error());
  EXPECT_LT(*trees.error(), *naive.error());
  // The last tick was Sunday's; eight hours on, Monday's work begins.
  std::vector<double> next(9 * DemandForecast::kTicksPerHour);
  trees.predict(next);
  EXPECT_NEAR(next[1], 20, 5);
  EXPECT_NEAR(next.back(), 80, 15);
}

/// Forty one-node jobs at once, then one at a time for a day.
Scenario busy_then_quiet() {
  Scenario scenario{.policy = "fifo", .cluster = "40x8", .placement = "best-fit", .jobs = {}};
  for (int i = 0; i < 40; ++i)
    scenario.jobs.push_back({.submit = 0, .gpus = 8, .duration = 3600.0 * (1 + i % 4)});
  for (int hour = 6; hour < 30; ++hour)
    scenario.jobs.push_back({.submit = hour * 3600.0, .gpus = 8, .duration = 3000});
  scenario.jobs.push_back({.submit = 31 * 3600.0, .gpus = 320, .duration = 600});
  return scenario;
}

TEST(Ces, SwitchesIdleNodesOffAndWakesThemForAGangThatNeedsAll) {
  class PowerLog final : public Observer {
   public:
    void append(Time, const Action& action) override {
      off += action.kind == ActionKind::PowerOff ? 1 : 0;
      on += action.kind == ActionKind::PowerOn ? 1 : 0;
    }
    int off = 0, on = 0;
  } log;
  Scenario scenario = busy_then_quiet();
  const auto manager =
      *make_power_manager("ces:buffer=2,history=3,future=6,keep=3,forecast_below=0");
  scenario.power = manager.get();
  scenario.sim.boot = std::chrono::seconds{300};
  const Outcome outcome = run(scenario, &log);
  EXPECT_GT(log.off, 30);
  EXPECT_GE(log.on, 30);
  for (const JobState state : outcome.state) EXPECT_EQ(state, JobState::Completed);
  EXPECT_NEAR(outcome.finish.back(), 31 * 3600 + 300 + 600, 1) << "the gang waited for the boot";
}

TEST(Ces, ChangesNothingForJobsThatFindTheirNodesOn) {
  Scenario plain = busy_then_quiet();
  plain.jobs.pop_back();
  Scenario saving = plain;
  const auto manager =
      *make_power_manager("ces:buffer=2,history=3,future=6,keep=3,forecast_below=0");
  saving.power = manager.get();
  EXPECT_EQ(run(plain).finish, run(saving).finish);
}

TEST(PowerManagers, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(make_power_manager("off")->get(), nullptr);
  EXPECT_FALSE(make_power_manager("sleepy"));
  EXPECT_FALSE(make_power_manager("ces:bufer=3"));
  EXPECT_FALSE(make_power_manager("ces:buffer=-1"));
  EXPECT_FALSE(make_power_manager("ces:tick=0"));
  EXPECT_FALSE(make_power_manager("ces:buffer"));
}

}  // namespace
}  // namespace berth::test
