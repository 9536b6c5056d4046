// Small random workloads for property tests: a contended cluster, sizes and lengths that collide
// often, so that ties and simultaneous events are the rule.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "base/rng.h"
#include "support/run.h"

namespace berth::test {

struct RandomOptions {
  int max_jobs = 12;
  int max_gpus = 8;  // of the cluster when it is one node
  bool many_nodes = false;
  bool fractions = false;  // times that are not whole seconds
  bool two_types = false;  // a second pool; some jobs insist on a type
};

[[nodiscard]] inline Scenario random_scenario(std::uint64_t seed, const RandomOptions& options) {
  Rng rng = Rng{seed}.fork("scenario");
  Scenario scenario;
  const int gpus = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(options.max_gpus)));
  const int nodes = options.many_nodes ? 1 + static_cast<int>(rng.below(5)) : 1;
  scenario.cluster = fmt::format("{}x{}", nodes, gpus);
  if (options.two_types) scenario.cluster += fmt::format(":v100,{}x{}:a100", nodes, gpus);
  const int jobs =
      2 + static_cast<int>(rng.below(static_cast<std::uint64_t>(options.max_jobs - 1)));
  double submit = 0;
  for (int i = 0; i < jobs; ++i) {
    JobSpec job;
    job.submit = submit;
    job.gpus = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(nodes * gpus)));
    job.duration = 1 + static_cast<double>(rng.below(20));
    if (options.fractions) job.duration += static_cast<double>(rng.below(1000)) * 1e-3;
    job.estimate = job.duration * (1 + static_cast<double>(rng.below(3)));
    job.user = fmt::format("u{}", rng.below(3));
    job.queue = fmt::format("q{}", rng.below(2));
    job.priority = static_cast<int>(rng.below(3));
    if (options.two_types)
      job.type = std::vector<std::string>{"", "v100", "a100", "a100|v100"}[rng.below(4)];
    job.model = rng.below(2) == 0 ? "vgg16" : "resnet50";
    scenario.jobs.push_back(job);
    submit += static_cast<double>(rng.below(5));
  }
  return scenario;
}

/// Position in Scenario::jobs of an engine's JobId: ids are "1", "2", … so ties keep the given
/// order.
[[nodiscard]] inline std::size_t given_order(const Scenario& scenario, JobId job) {
  std::vector<std::size_t> order(scenario.jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return scenario.jobs[i].submit; });
  return order[job.value];
}

}  // namespace berth::test
