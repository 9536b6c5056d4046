// Cluster energy saving: the control rule on the series of its specification, the forecast, and
// nodes that really go off and on in runs.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "power/ces.h"
#include "power/power_managers.h"
#include "power/spare_nodes.h"
#include "support/run.h"
#include "support/second_node_off.h"

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

class PowerLog final : public Observer {
 public:
  void append(Time, const Action& action) override {
    off += action.kind == ActionKind::PowerOff ? 1 : 0;
    on += action.kind == ActionKind::PowerOn ? 1 : 0;
  }
  int off = 0, on = 0;
};

constexpr const char* kEager = "ces:buffer=2,history=3,future=6,keep=3,forecast_below=0";

// Two nodes are on and idle when 16 are wanted: what it needs and the buffer, less those two.
TEST(Ces, WakesExactlyWhatALargeGangNeedsAndTheBufferAtOnce) {
  PowerLog log;
  Scenario scenario = busy_then_quiet();
  scenario.jobs.back().gpus = 16 * 8;
  const auto manager = *make_power_manager(kEager);
  scenario.power = manager.get();
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(log.on, 16 + 2 - 2);
  EXPECT_NEAR(outcome.start.back(), 31 * 3600 + 120, 1) << "one boot later";
}

TEST(Ces, ALargeTypeKeepsAHundredthOfItsNodesAsBuffer) {
  // In the warm-up all that is not needed but the buffer is switched off; in the end nobody needs
  // any.
  const auto off = [](const std::string& text) {
    PowerLog log;
    Scenario scenario{.policy = "fifo", .cluster = "700x1", .placement = "best-fit", .jobs = {}};
    scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 60}};
    const auto manager = *make_power_manager(text);
    scenario.power = manager.get();
    static_cast<void>(run(scenario, &log));
    return log.off;
  };
  EXPECT_EQ(off("ces"), 700 - 7);
  EXPECT_EQ(off("ces:buffer_share=0"), 700 - 6);
  EXPECT_EQ(off("ces:buffer=20"), 700 - 20);
}

TEST(Ces, NodesThatDoNotBootAreReplaced) {
  Scenario scenario = busy_then_quiet();
  scenario.jobs.back().gpus = 16 * 8;
  scenario.sim.boot_failures = 0.5;
  PowerLog log;
  const auto manager = *make_power_manager(kEager);
  scenario.power = manager.get();
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(outcome.state.back(), JobState::Completed);
  EXPECT_GT(log.on, 16) << "others were woken for the broken ones";
}

// Boots of 20 s from 40 on: ready at 60, 80 or 100, or broken.
TEST(Booting, IsTriedThreeTimes) {
  std::map<double, int> starts;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SecondNodeOff manager;
    Scenario scenario{.policy = "fifo", .cluster = "2x1", .placement = "best-fit", .jobs = {}};
    scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 1000},
                     {.submit = 50, .gpus = 1, .duration = 10}};
    scenario.power = &manager;
    scenario.sim.boot = std::chrono::seconds{20};
    scenario.sim.boot_failures = 0.5;
    scenario.sim.boot_seed = seed;
    ++starts[run(scenario).start[1]];
  }
  ASSERT_EQ(starts.size(), 4U);
  EXPECT_NEAR(starts[60], 100, 25);
  EXPECT_NEAR(starts[80], 50, 20);
  EXPECT_NEAR(starts[100], 25, 15);
  EXPECT_NEAR(starts[1000], 25, 15) << "broken: it waits for the other node";
}

TEST(SpareNodes, AreAPartOfEachTypeRoundedUp) {
  EXPECT_EQ(spares_of(100, 0.02), 2);
  EXPECT_EQ(spares_of(101, 0.02), 3);
  EXPECT_EQ(spares_of(10, 0.01), 1);
  EXPECT_EQ(spares_of(50, 0), 0);
  EXPECT_EQ(spares_of(1, 0.02), 0);
  EXPECT_EQ(spares_of(4, 1), 3) << "somebody has to work";
}

// A gang on three of four nodes loses one at 100 for hours: the fourth is switched on for it.
TEST(SpareNodes, StandInForNodesThatFail) {
  Scenario scenario{.policy = "fifo", .cluster = "4x8", .placement = "best-fit", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 24, .duration = 1000},
                   {.submit = 10, .gpus = 8, .duration = 100}};
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(100), seconds_to_time(50000)}};
  scenario.sim.boot = std::chrono::seconds{60};
  PowerLog log;
  const auto manager = *make_power_manager("spare:share=0.25");
  scenario.power = manager.get();
  const Outcome outcome = run(scenario, &log);
  EXPECT_EQ(log.on, 1);
  EXPECT_NEAR(outcome.finish[0], 1000 + 60, 1e-6);
  EXPECT_GE(outcome.start[1], 1060) << "the spare node is nobody's before";
}

TEST(SpareNodes, AreUsedByAJobThatNeedsThemAll) {
  Scenario scenario{.policy = "fifo", .cluster = "4x8", .placement = "best-fit", .jobs = {}};
  scenario.jobs = {{.submit = 0, .gpus = 1, .duration = 5},
                   {.submit = 10, .gpus = 32, .duration = 100}};
  scenario.sim.boot = std::chrono::seconds{60};
  const auto manager = *make_power_manager("spare:share=0.25");
  scenario.power = manager.get();
  EXPECT_NEAR(run(scenario).start[1], 70, 1e-6);
}

TEST(Ces, SwitchesIdleNodesOffAndWakesThemForAGangThatNeedsAll) {
  PowerLog log;
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
  EXPECT_FALSE(make_power_manager("spare:share=2"));
  EXPECT_FALSE(make_power_manager("spare:buffer=1"));
}

}  // namespace
}  // namespace berth::test
