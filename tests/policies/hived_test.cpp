// The policy `hived`: tenants never wait for others, guests give way.
#include <gtest/gtest.h>

#include "support/run.h"

namespace berth::test {
namespace {

Scenario two_servers(std::string cells, std::vector<JobSpec> jobs) {
  return {.policy = "hived",
          .settings = {{"cells", std::move(cells)}},
          .cluster = "2x8",
          .placement = "best-fit",
          .jobs = std::move(jobs)};
}

// Guests fill both servers; the tenant binds its whole server at once, guests there give way.
TEST(Hived, ATenantGetsItsCellAtOnce) {
  const Outcome outcome =
      run(two_servers("a:8x1", {{.gpus = 8, .duration = 100, .user = "x"},
                                {.gpus = 8, .duration = 100, .user = "y"},
                                {.submit = 10, .gpus = 8, .duration = 50, .user = "a"}}));
  EXPECT_EQ(outcome.start[2], 10);
  EXPECT_EQ(outcome.finish[2], 60);
  EXPECT_EQ(outcome.total_preemptions, 1);
}

// Guests are packed away from the cells that tenants will bind: the first server stays free.
TEST(Hived, GuestsComeFromTheOtherEnd) {
  const Outcome outcome =
      run(two_servers("a:8x1", {{.gpus = 1, .duration = 100, .user = "x"},
                                {.gpus = 2, .duration = 100, .user = "y"},
                                {.submit = 10, .gpus = 8, .duration = 50, .user = "a"}}));
  EXPECT_EQ(outcome.start[2], 10);
  EXPECT_EQ(outcome.total_preemptions, 0);
}

// Quotas in GPUs would let four 2-GPU jobs of b lie on both servers; cells keep a's server whole.
TEST(Hived, SmallJobsOfATenantShareItsCells) {
  const Outcome outcome = run(two_servers(
      "a:8x1,b:8x1", {{.gpus = 2, .duration = 100, .user = "b"},
                      {.gpus = 2, .duration = 100, .user = "b"},
                      {.gpus = 4, .duration = 100, .user = "b"},
                      {.gpus = 2, .duration = 100, .user = "b"},  // a guest beside a's cell
                      {.submit = 1, .gpus = 8, .duration = 10, .user = "a"}}));
  EXPECT_EQ(outcome.start[3], 0);
  EXPECT_EQ(outcome.start[4], 1);
  EXPECT_EQ(outcome.preemptions[3], 1);
  EXPECT_EQ(outcome.preemptions[0] + outcome.preemptions[1] + outcome.preemptions[2], 0);
}

TEST(Hived, AGangOfSeveralNodesTakesWholeNodes) {
  const Outcome outcome =
      run(two_servers("a:8x2", {{.gpus = 3, .duration = 100, .user = "x"},
                                {.submit = 5, .gpus = 12, .duration = 10, .user = "a"}}));
  EXPECT_EQ(outcome.start[1], 5);
  EXPECT_EQ(outcome.finish[1], 15);
}

// A node that is down takes its cells along; the tenant waits for it, and goes on when it is back.
TEST(Hived, OutagesOnlyDelay) {
  Scenario scenario = two_servers("a:8x2", {{.gpus = 8, .duration = 20, .user = "a"},
                                            {.gpus = 8, .duration = 20, .user = "a"}});
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(5), seconds_to_time(30)}};
  const Outcome outcome = run(scenario);
  EXPECT_EQ(outcome.state[0], JobState::Completed);
  EXPECT_EQ(outcome.state[1], JobState::Completed);
}

TEST(Hived, CellsAreReadStrictly) {
  EXPECT_TRUE(make_policy("hived", {{"cells", "lab:8x2+4x1,other:1x3"}}));
  for (const std::string bad : {"lab", "lab:", "lab:8", "lab:8x0", "lab:x2", ":8x1", "lab:8x2+"})
    EXPECT_FALSE(make_policy("hived", {{"cells", bad}})) << bad;
}

// The guarantee: with cells, a tenant's jobs end exactly as in a private cluster of these cells.
TEST(HivedProperty, ATenantIsServedAsInAPrivateCluster) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng{seed};
    std::vector<JobSpec> mine;
    std::vector<JobSpec> all;
    double submit = 0;
    for (int i = 0; i < 30; ++i) {
      submit += static_cast<double>(rng.below(8));
      const bool is_mine = rng.below(2) == 0;
      const JobSpec job{.submit = submit,
                        .gpus = 1 << rng.below(4),
                        .duration = 1 + static_cast<double>(rng.below(30)),
                        .user = is_mine ? "a" : "x"};
      all.push_back(job);
      if (is_mine) mine.push_back(job);
    }
    Scenario shared = two_servers("a:8x1", all);
    Scenario own = two_servers("a:8x1", mine);
    own.cluster = "1x8";
    const Outcome in_shared = run(shared);
    const Outcome in_own = run(own);
    std::size_t k = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].user != "a") continue;
      EXPECT_LE(in_shared.finish[i], in_own.finish[k] + 1e-6) << "seed " << seed << " job " << i;
      ++k;
    }
  }
}

}  // namespace
}  // namespace berth::test
