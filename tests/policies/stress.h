// Random small worlds for one policy and its parameters: bursts, cancellations, two device types,
// cores, nodes that fail and return, start and restart costs. Every job must come to its end and
// the same seed must give the same actions; that no device is given twice is checked by the cluster
// itself.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>

#include <fmt/format.h>

#include "support/run.h"

namespace berth::test {

struct Stress {
  std::string policy;
  Settings settings = {};
  std::string estimator = "oracle";
  int rounds = 40;
  int jobs = 60;
};

inline Trace random_trace(Rng& rng, int jobs) {
  Trace trace;
  trace.source = "stress";
  double submit = 0;
  const auto pick = [&](const std::string& prefix, std::uint64_t count) {
    const std::uint64_t n = rng.below(count + 1);
    return trace.names.intern(n == 0 ? "" : prefix + std::to_string(n));
  };
  for (int i = 0; i < jobs; ++i) {
    if (i > 0 && rng.below(3) > 0) submit += static_cast<double>(rng.below(8));
    TraceJob job;
    job.id = trace.names.intern(std::to_string(i + 1));
    job.submit = seconds_to_time(submit);
    job.gpus = static_cast<std::int32_t>(1 + rng.below(rng.below(4) == 0 ? 8 : 3));
    job.duration = seconds_to_duration(static_cast<double>(1 + rng.below(30)));
    job.estimate = job.duration * static_cast<std::int64_t>(1 + rng.below(3));
    job.cpus_milli = static_cast<std::int32_t>(rng.below(4) * 1000) * job.gpus;
    job.priority = static_cast<std::int32_t>(rng.below(4));
    job.user = pick("u", 4);
    job.group = pick("g", 2);
    job.queue = pick("q", 3);
    job.gpu_type = trace.names.intern(rng.below(3) == 0   ? "a100"
                                      : rng.below(3) == 0 ? "v100|a100"
                                                          : "");
    if (rng.below(8) == 0)
      job.cancel_at = seconds_to_time(submit + static_cast<double>(rng.below(40)));
    trace.jobs.push_back(job);
  }
  trace.normalise();
  return trace;
}

inline std::string stress_once(const Stress& stress, std::uint64_t seed) {
  Rng rng{seed};
  const Trace trace = random_trace(rng, stress.jobs);
  Cluster cluster = *load_cluster("3x4:a100,2x4:v100");
  if (rng.below(2) == 0) {
    for (Node& node : cluster.nodes) node.cpus_milli = 12'000;
  }
  SimOptions sim;
  if (rng.below(2) == 0) {
    sim.outages.push_back({NodeId{static_cast<std::uint32_t>(rng.below(5))}, seconds_to_time(20),
                           seconds_to_time(70)});
  }
  if (rng.below(2) == 0) {
    sim.costs = {.start = seconds_to_duration(1),
                 .preempt = seconds_to_duration(0.5),
                 .resume = seconds_to_duration(2)};
  }
  constexpr std::array<const char*, 4> kPlacements{"count", "best-fit", "consolidated",
                                                   "first-fit"};
  auto placement = *make_placement(kPlacements[rng.below(4)]);
  auto estimator = *make_estimator(stress.estimator, seed);
  auto policy = make_policy(stress.policy, stress.settings);
  if (!policy) {
    ADD_FAILURE() << policy.error().text();
    return {};
  }
  if ((*policy)->traits().needs_devices() && placement->mode() == ClusterState::Mode::Count)
    placement = *make_placement("best-fit");  // no devices to share in the other
  const RateModel rates{ProfileSet{}, cluster, Effects{}};
  SimExecutor executor{trace, cluster, with_truth(sim, **policy, rates)};
  Engine engine{{.trace = trace,
                 .cluster = cluster,
                 .policy = **policy,
                 .placement = *placement,
                 .estimator = *estimator,
                 .executor = executor,
                 .believed = rates,
                 .seed = seed}};
  const auto done = engine.run();
  EXPECT_TRUE(done) << done.error().text() << " (seed " << seed << ", placement "
                    << placement->name() << ")";
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i)
    EXPECT_TRUE(is_over(engine.jobs().state[JobId{i}]));
  EXPECT_EQ(engine.cluster().free_gpus(), engine.cluster().usable_gpus());
  return engine.digest();
}

inline void survive(const Stress& stress) {
  for (int round = 0; round < stress.rounds; ++round) {
    const auto seed = static_cast<std::uint64_t>(round + 1);
    ASSERT_EQ(stress_once(stress, seed), stress_once(stress, seed)) << "seed " << seed;
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace berth::test
