// Gandiva_fair on simulated clusters: users before jobs, turns at home, who ends up on which type.
#include <gtest/gtest.h>

#include "policies/gandiva_fair/users.h"
#include "policies/stress.h"
#include "support/run.h"

namespace berth::test {
namespace {

Profile model(const std::string& name, double k80) {
  Profile profile;
  profile.name = name;
  profile.speeds = {{"v100", 1}, {"k80", k80}};
  return profile;
}

JobSpec job(const std::string& user, const std::string& name, double duration, int gpus = 1) {
  return {.submit = 0, .gpus = gpus, .duration = duration, .user = user, .model = name};
}

Scenario scenario(const std::string& cluster, std::vector<JobSpec> jobs) {
  ProfileSet profiles;
  profiles.add(model("steep", 0.2));
  profiles.add(model("flat", 0.8));
  Effects effects;
  effects.device = true;
  return {.policy = "gandiva-fair",
          .settings = {{"switch_cost", "0"}, {"migration_cost", "0"}},
          .cluster = cluster,
          .placement = "best-fit",
          .jobs = std::move(jobs),
          .profiles = std::move(profiles),
          .effects = effects};
}

TEST(GandivaFair, AUserWithManyJobsGetsNoMoreThanAUserWithOne) {
  std::vector<JobSpec> jobs{job("lone", "flat", 3600)};
  for (int i = 0; i < 3; ++i) jobs.push_back(job("many", "flat", 3600));
  const Outcome outcome = run(scenario("1x1:v100", jobs));
  EXPECT_NEAR(outcome.finish[0], 7200, 120);  // half of the time
  EXPECT_NEAR(outcome.makespan, 4 * 3600, 1e-3);
}

TEST(GandivaFair, TicketsWeigh) {
  Scenario weighted = scenario("1x1:v100", {job("a", "flat", 36000), job("b", "flat", 36000)});
  weighted.settings.push_back({"tickets", "b:3"});
  EXPECT_NEAR(run(weighted).finish[1], 48000, 240);  // three quarters of the time
}

TEST(GandivaFair, TurnsAreTakenOnTheSameServer) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(job("u" + std::to_string(i), "flat", 1800));
  const Outcome outcome = run(scenario("2x2:v100", jobs));
  int moves = 0;
  int turns = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    moves += outcome.migrations[i];
    turns += outcome.suspensions[i];
  }
  EXPECT_EQ(moves, 0);
  EXPECT_GT(turns, 50);  // 8 x 30 minutes on four GPUs, a minute at a time
  EXPECT_NEAR(outcome.makespan, 3600, 120);
}

TEST(GandivaFair, AGangLargerThanAServerTakesItsTurns) {
  std::vector<JobSpec> jobs{job("wide", "flat", 1200, 4)};
  for (int i = 0; i < 4; ++i) jobs.push_back(job("small", "flat", 1200));
  const Outcome outcome = run(scenario("2x2:v100", jobs));
  EXPECT_NEAR(outcome.finish[0], 2400, 180);
  EXPECT_NEAR(outcome.makespan, 2400, 180);
}

TEST(GandivaFair, TradingGivesFastDevicesToWhoGainsMost) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(job("steep", "steep", 7200));
  for (int i = 0; i < 8; ++i) jobs.push_back(job("flat", "flat", 7200));
  const auto mean = [&](const Outcome& outcome, std::size_t first) {
    double sum = 0;
    for (std::size_t i = first; i < first + 8; ++i) sum += outcome.finish[i] / 8;
    return sum;
  };
  Scenario with = scenario("1x4:v100,1x4:k80", jobs);
  Scenario without = with;
  without.settings.push_back({"trading", "off"});
  const Outcome traded = run(with);
  const Outcome kept = run(without);
  EXPECT_LT(mean(traded, 0), 0.9 * mean(kept, 0));   // the buyer gains
  EXPECT_LT(mean(traded, 8), 1.05 * mean(kept, 8));  // the seller hardly notices
}

TEST(GandivaFair, EveryUserOwnsItsPartOfEveryTypeItCanUse) {
  using gandiva_fair::User;
  const std::vector<double> both{1, 0.5};
  const std::vector<double> first{1, 0};
  std::vector<User> users(3);
  users[0].jobs[JobId{0}] = {.gpus = 1, .rates = both};
  users[0].tickets = 3;
  users[1].jobs[JobId{1}] = {.gpus = 1, .rates = first};
  const std::vector<double> gpus{8, 4};
  share_out(users, gpus);
  EXPECT_EQ(users[0].owned, (std::vector<double>{6, 4}));
  EXPECT_EQ(users[1].owned, (std::vector<double>{2, 0}));
  EXPECT_EQ(users[2].owned, (std::vector<double>{0, 0}));  // nothing to run
}

TEST(GandivaFair, TradesBetweenEveryPairOfTypes) {
  using gandiva_fair::User;
  const std::vector<double> steep{5, 1};
  const std::vector<double> flat{1.25, 1};
  std::vector<User> users(2);
  users[0].jobs[JobId{0}] = {.gpus = 1, .rates = flat};
  users[1].jobs[JobId{1}] = {.gpus = 1, .rates = steep};
  share_out(users, std::vector<double>{8, 8});
  trade_all(users, std::vector<std::size_t>{0, 1});
  EXPECT_EQ(users[1].owned, (std::vector<double>{7, 0.25}));  // the worked example
  EXPECT_EQ(users[0].owned, (std::vector<double>{1, 7.75}));
}

TEST(GandivaFair, SurvivesRandomWorlds) {
  survive({.policy = "gandiva-fair", .settings = {{"quantum", "3"}}, .rounds = 25});
  survive({.policy = "gandiva-fair",
           .settings = {{"quantum", "2"}, {"balancing", "off"}, {"trading", "off"}},
           .rounds = 10});
}

}  // namespace
}  // namespace berth::test
