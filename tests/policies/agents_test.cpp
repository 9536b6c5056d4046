// The policy `agents` in whole runs.
#include <gtest/gtest.h>

#include "support/run.h"

namespace berth::test {
namespace {

ProfileSet wide_class() {
  ProfileSet profiles;
  Profile wide;
  wide.name = "wide";  // a quarter slower over a rack at four GPUs (as VGG16)
  wide.iteration = {.alpha = 0.20, .beta = 0, .gradient_bytes = 528e6, .overlap = 2};
  profiles.add(wide);
  return profiles;
}

// Nothing idles that somebody could use: whoever sees the offer, all that fit start at once.
TEST(Agents, IsWorkConserving) {
  const Outcome outcome = run({.policy = "agents",
                               .cluster = "2x4",
                               .placement = "topology",
                               .jobs = {{.gpus = 4, .duration = 100},
                                        {.gpus = 2, .duration = 10},
                                        {.gpus = 1, .duration = 50},
                                        {.gpus = 1, .duration = 50}}});
  for (const double start : outcome.start) EXPECT_EQ(start, 0);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

// A lease of 10 s: the long job loses the only GPU to the short one, whose rho would be far worse.
TEST(Agents, AHolderLosesItsDevicesWhenItsLeaseEndsAndAnotherNeedsThemMore) {
  const Outcome outcome =
      run({.policy = "agents",
           .settings = {{"lease", "10"}, {"interval", "5"}},
           .cluster = "1x1",
           .placement = "topology",
           .jobs = {{.gpus = 1, .duration = 1000}, {.submit = 1, .gpus = 1, .duration = 2}}});
  EXPECT_LE(outcome.finish[1], 20);
  EXPECT_EQ(outcome.preemptions[0], 1);
}

TEST(Agents, LeasesAreRenewedWhileNobodyWaits) {
  const Outcome outcome =
      run({.policy = "agents",
           .settings = {{"lease", "10"}},
           .cluster = "1x2",
           .placement = "topology",
           .jobs = {{.gpus = 1, .duration = 1000}, {.submit = 1, .gpus = 1, .duration = 500}}});
  EXPECT_EQ(outcome.total_preemptions, 0);
  EXPECT_EQ(outcome.finish[0], 1000);
}

// When the first job ends two GPUs are free on either server. A strict job waits on for four
// together while that pays, and goes over the rack when it has waited longer than the distance
// costs: 1.2756 / 1.0922 - 1 = 16.8 % of what is left of it.
TEST(Agents, WaitsForLocalityOnlyWhileItPays) {
  Scenario scenario{.policy = "agents",
                    .settings = {{"defragment", "off"}},
                    .cluster = "2x4",
                    .placement = "topology",
                    .jobs = {{.gpus = 2, .duration = 400},
                             {.gpus = 2, .duration = 9000},
                             {.gpus = 2, .duration = 9000},
                             {.submit = 1, .gpus = 4, .duration = 10'000, .model = "wide"}},
                    .profiles = wide_class(),
                    .effects = {.sharing = true, .locality = true}};
  const Outcome patient = run(scenario);
  EXPECT_GT(patient.start[3], 1 + 1679);  // a loss of 1,679 s
  EXPECT_LE(patient.start[3], 1 + 1679 + 60 + 1);
  scenario.jobs[3].duration = 600;  // 101 s to lose: less than it has waited already
  const Outcome hasty = run(scenario);
  EXPECT_EQ(hasty.start[3], hasty.finish[0]);
}

// Two GPUs are free on either server, so the job starts spread; when the neighbour has ended it
// moves together, since 14 % of hours are more than the move costs.
TEST(Agents, MovesToCloserDevicesWhenThatPays) {
  Scenario scenario{.policy = "agents",
                    .settings = {{"migration_cost", "30"}},
                    .cluster = "2x6",
                    .placement = "topology",
                    .jobs = {{.gpus = 4, .duration = 3000},
                             {.gpus = 4, .duration = 20'000},
                             {.submit = 1, .gpus = 4, .duration = 9000, .model = "wide"}},
                    .profiles = wide_class(),
                    .effects = {.sharing = true, .locality = true}};
  const Outcome outcome = run(scenario);
  EXPECT_LT(outcome.start[2], outcome.finish[0]);
  EXPECT_EQ(outcome.migrations[2], 1);
  EXPECT_GE(outcome.overhead[2], 30);
  scenario.settings = {{"migration_interval", "0"}};
  const Outcome fixed = run(scenario);
  EXPECT_EQ(fixed.migrations[2], 0);
  EXPECT_GT(fixed.finish[2], outcome.finish[2]);
}

TEST(Agents, DeadlineBiddersComeBeforeTheUnhurried) {
  const Outcome outcome =
      run({.policy = "agents",
           .settings = {{"value", "deadline"}, {"hidden", "0"}},
           .cluster = "1x1",
           .placement = "topology",
           .jobs = {{.gpus = 1, .duration = 10},
                    {.submit = 1, .gpus = 1, .duration = 100},
                    {.submit = 1, .gpus = 1, .duration = 100, .deadline = 150}}});
  EXPECT_EQ(outcome.start[2], 10);
  EXPECT_EQ(outcome.start[1], 110);
}

}  // namespace
}  // namespace berth::test
