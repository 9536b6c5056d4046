// Runs a scenario with a recorder and hands back what the reports are made of.
#pragma once

#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "metrics/run_data.h"
#include "support/run.h"

namespace berth::test {

/// Everything that must stay alive while a run is looked at.
struct RecordedRun {
  Trace trace;
  Cluster cluster;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Placement> placement;
  std::unique_ptr<Estimator> estimator;
  std::unique_ptr<RateModel> rates;
  std::unique_ptr<SimExecutor> executor;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Engine> engine;
  RunLabels labels;

  [[nodiscard]] RunData analysed() {
    return analyse(*engine, trace, cluster, recorder.get(), labels);
  }
};

inline constexpr RecordOptions kRecordAll{.actions = true, .intervals = true, .timeline = true};

[[nodiscard]] inline std::unique_ptr<RecordedRun> recorded(
    const Scenario& scenario, const RecordOptions& options = kRecordAll,
    const std::function<void(Trace&)>& change = {}) {
  auto run = std::make_unique<RecordedRun>();
  run->trace = make_trace(scenario.jobs);
  if (change) change(run->trace);
  run->cluster = load_cluster(scenario.cluster).value();
  run->policy = make_policy(scenario.policy, scenario.settings).value();
  run->placement = make_placement(scenario.placement).value();
  run->estimator = make_estimator(scenario.estimator, scenario.seed).value();
  run->rates = std::make_unique<RateModel>(scenario.profiles, run->cluster, scenario.effects);
  run->executor = std::make_unique<SimExecutor>(
      run->trace, run->cluster, with_truth(scenario.sim, *run->policy, *run->rates));
  run->recorder = std::make_unique<Recorder>(run->trace, run->cluster, options);
  run->engine = std::make_unique<Engine>(EngineParts{.trace = run->trace,
                                                     .cluster = run->cluster,
                                                     .policy = *run->policy,
                                                     .placement = *run->placement,
                                                     .estimator = *run->estimator,
                                                     .executor = *run->executor,
                                                     .believed = *run->rates,
                                                     .observer = run->recorder.get(),
                                                     .power = scenario.power,
                                                     .seed = scenario.seed,
                                                     .checkpoint_interval = {}});
  run->recorder->watch(*run->engine);
  const auto done = run->engine->run();
  if (!done) ADD_FAILURE() << done.error().text();
  run->labels = {.policy = scenario.policy,
                 .label = {},
                 .placement = scenario.placement,
                 .estimator = scenario.estimator,
                 .seed = scenario.seed,
                 .wall_seconds = 0.25};
  return run;
}

}  // namespace berth::test
