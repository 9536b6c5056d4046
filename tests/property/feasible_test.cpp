// No placement refuses what some placement could start: on random small clusters of unlike nodes,
// every way to spread a gang over the nodes is tried by hand, and whatever one of them allows is
// accepted by each placement of the registry and starts on the empty cluster.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/feasibility.h"
#include "support/run.h"
#include "support/suite_name.h"

namespace berth::test {
namespace {

/// Tries every number of devices on every node from `at` on.
bool fits_by_hand(const Cluster& cluster, PoolId pool, const TraceJob& job, std::size_t at,
                  std::int64_t need) {
  if (need == 0) return true;
  if (at == cluster.nodes.size()) return false;
  const Node& node = cluster.nodes[at];
  for (std::int64_t here = 0; here <= node.gpus && here <= need; ++here) {
    if (here > 0 && node.pool != pool) break;
    // `here` of the gang's devices take this share of what the whole gang asks for.
    const auto exceeds = [&](std::int64_t asked, std::int64_t has) {
      return has > 0 && here * asked > has * job.gpus;
    };
    if (exceeds(job.cpus_milli, node.cpus_milli) || exceeds(job.memory_mib, node.memory_mib)) break;
    if (fits_by_hand(cluster, pool, job, at + 1, need - here)) return true;
  }
  return false;
}

Cluster random_cluster(Rng& rng) {
  const auto group = [&](const char* type) {
    return fmt::format("{}x{}:{}", 1 + rng.below(2), 1 + rng.below(5), type);
  };
  std::string text = group("v100") + "," + group("v100");
  if (rng.below(2) == 0) text += "," + group("a100");
  Cluster cluster = *parse_cluster_short(text);
  if (rng.below(2) == 0) {
    cluster.racks = {"a", "b"};
    for (Node& node : cluster.nodes) node.rack = RackId{static_cast<std::uint32_t>(rng.below(2))};
  }
  for (Node& node : cluster.nodes) {
    if (rng.below(3) > 0) node.cpus_milli = 1000 * static_cast<std::int64_t>(1 + rng.below(12));
    if (rng.below(3) == 0) node.memory_mib = static_cast<std::int64_t>(1 + rng.below(4000));
  }
  return cluster;
}

class FeasibleJobs : public ::testing::TestWithParam<std::string> {};

TEST_P(FeasibleJobs, AreNeverRejectedAndStartOnAnEmptyCluster) {
  int fitted = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng = Rng{seed}.fork("feasible");
    const Cluster cluster = random_cluster(rng);
    JobSpec asked{.gpus = 1 + static_cast<int>(rng.below(12)),
                  .duration = 5,
                  .model = rng.below(2) == 0 ? "vgg16" : "resnet50",
                  .cpus = static_cast<int>(rng.below(16))};
    Trace trace = make_trace({asked});
    TraceJob& job = trace.jobs.front();
    if (rng.below(3) == 0) job.memory_mib = static_cast<std::int32_t>(rng.below(6000));
    bool fits = false;
    for (std::uint32_t pool = 0; pool < cluster.pools.size(); ++pool)
      fits = fits || fits_by_hand(cluster, PoolId{pool}, job, 0, job.gpus);
    const auto placement = *make_placement(GetParam());
    const ClusterState empty{cluster, placement->mode()};
    ShapeMaker maker{trace, empty, *placement};
    ShapeTable shapes;
    const ShapeId shape = maker.shape_of(job, shapes);
    const std::string reason = maker.why_never(job, shape, shapes);
    if (GetParam() != "count") {
      EXPECT_EQ(reason.empty(), fits) << reason;
    } else if (fits) {
      EXPECT_EQ(reason, "");  // totals forgive more than nodes do
    }
    if (fits && job.memory_mib == 0) {
      ++fitted;
      Scenario scenario{.cluster = "1x1", .placement = GetParam(), .jobs = {asked}};
      scenario.edit_cluster = [&](Cluster& made) { made = cluster; };
      EXPECT_EQ(run(scenario).start.front(), 0);
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(fitted, 300);
}

std::vector<std::string> all_placements() {
  std::vector<std::string> names;
  for (const PlacementInfo& info : placements()) names.push_back(info.name);
  names.push_back("topology:interference");
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, FeasibleJobs, ::testing::ValuesIn(all_placements()), kByName);

// The two that were refused: the fewest nodes are one of eight GPUs and two of two, not two of
// eight; and two nodes of eight cores for 4 GPUs with three cores each, not one.
TEST(Consolidated, CountsTheNodesThatAreThere) {
  for (const std::string placement : {"consolidated", "skew"}) {
    Scenario unlike{.cluster = "1x8:v100,4x2:v100", .placement = placement, .jobs = {}};
    unlike.jobs = {{.gpus = 12, .duration = 10, .model = "vgg16"}};
    EXPECT_EQ(run(unlike).finish, (std::vector<double>{10})) << placement;
    Scenario cores{.cluster = "2x4", .placement = placement, .jobs = {}, .node_cpus = 8};
    cores.jobs = {{.gpus = 4, .duration = 10, .model = "vgg16", .cpus = 12}};
    EXPECT_EQ(run(cores).finish, (std::vector<double>{10})) << placement;
  }
}

// The roomy node fails at 2: from then on the fewest are two small ones, and nobody waits for it.
TEST(Consolidated, DoesNotWaitForANodeThatHasFailed) {
  Scenario scenario{.cluster = "1x4:v100,2x2:v100", .placement = "consolidated", .jobs = {}};
  scenario.jobs = {{.submit = 5, .gpus = 4, .duration = 10}};
  scenario.sim.outages = {{NodeId{0}, seconds_to_time(2), seconds_to_time(1000)}};
  EXPECT_EQ(run(scenario).finish, (std::vector<double>{15}));
}

}  // namespace
}  // namespace berth::test
