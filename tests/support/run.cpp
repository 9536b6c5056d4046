#include "support/run.h"

#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "support/asked_executor.h"
#include "support/opening_executor.h"

namespace berth::test {

Trace make_trace(const std::vector<JobSpec>& jobs, std::uint64_t shuffle) {
  Trace trace;
  trace.source = "test";
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobSpec& spec = jobs[i];
    TraceJob job;
    job.id = trace.names.intern(fmt::format("{}", i + 1));
    job.submit = seconds_to_time(spec.submit);
    job.gpus = spec.gpus;
    job.duration = seconds_to_duration(spec.duration);
    job.user = trace.names.intern(spec.user);
    job.queue = trace.names.intern(spec.queue);
    job.model = trace.names.intern(spec.model);
    job.gpu_type = trace.names.intern(spec.type);
    job.cpus_milli = spec.cpus * 1000;
    job.priority = spec.priority;
    job.estimate = seconds_to_duration(spec.estimate);
    job.batch_size = spec.batch;
    job.gpu_milli = spec.gpu_milli;
    job.gpus_max = spec.gpus_max;
    if (spec.gpus_max > 0) job.gpus_min = spec.gpus;
    job.kind = spec.kind;
    if (spec.deadline > 0) job.deadline = seconds_to_time(spec.deadline);
    job.soft_deadline = spec.soft_deadline;
    job.group = trace.names.intern(spec.group);
    job.weight = static_cast<float>(spec.weight);
    job.study = trace.names.intern(spec.study);
    job.failure = spec.failure;
    job.failed_attempts = spec.failed_attempts;
    job.preemptible = spec.preemptible;
    if (spec.failure != FailureKind::Unknown) job.status = TraceStatus::Failed;
    trace.jobs.push_back(job);
  }
  if (shuffle != 0) {
    Rng rng{shuffle};
    for (std::size_t i = trace.jobs.size(); i > 1; --i)
      std::swap(trace.jobs[i - 1], trace.jobs[rng.below(i)]);
  }
  trace.normalise();
  return trace;
}

SimOptions with_truth(SimOptions sim, const Policy& policy, const RateModel& rates) {
  const bool rates_matter = policy.traits().shares_devices || policy.traits().resizes ||
                            includes(policy.traits().needs, Need::Reports) ||
                            rates.effects() != Effects{};
  if (rates_matter) sim.truth = &rates;
  return sim;
}

namespace {

/// The jobs of most scenarios declare no range. Elastic policies are tested as their papers have
/// them, with every job elastic, unless the scenario says otherwise.
Settings with_elastic_jobs(const Scenario& scenario) {
  Settings settings = scenario.settings;
  const auto is_rule = [](const auto& setting) { return setting.first == "elastic"; };
  const auto entry = find_policy(scenario.policy);
  if (!entry || std::ranges::any_of(settings, is_rule)) return settings;
  const Settings& usual = (*entry)->test_settings;
  std::ranges::copy_if(usual, std::back_inserter(settings), is_rule);
  return settings;
}

}  // namespace

Outcome run(const Scenario& scenario, Observer* observer) {
  auto policy = make_policy(scenario.policy, with_elastic_jobs(scenario));
  if (!policy) {
    ADD_FAILURE() << policy.error().text();
    return {};
  }
  return run_with(scenario, **policy, observer);
}

Outcome run_with(const Scenario& scenario, Policy& policy, Observer* observer) {
  const Trace trace = make_trace(scenario.jobs, scenario.shuffle);
  auto cluster = load_cluster(scenario.cluster);
  auto placement = make_placement(scenario.placement);
  auto estimator = make_estimator(scenario.estimator, scenario.seed);
  if (!cluster || !placement || !estimator) {
    ADD_FAILURE() << "bad scenario";
    return {};
  }
  for (Node& node : cluster->nodes) node.cpus_milli = scenario.node_cpus * 1000;
  if (scenario.edit_cluster) scenario.edit_cluster(*cluster);
  const RateModel rates{scenario.profiles, *cluster, scenario.effects};
  const SimOptions sim = with_truth(scenario.sim, policy, rates);
  Trace slots = slots_of(trace);
  std::unique_ptr<Executor> executor;
  if (scenario.open) {
    executor = std::make_unique<OpeningExecutor>(trace, slots, *cluster, sim);
  } else {
    executor = std::make_unique<SimExecutor>(trace, *cluster, sim);
  }
  if (scenario.lateness)
    executor =
        std::make_unique<UnkindExecutor>(std::move(executor), *scenario.lateness, scenario.seed);
  if (!scenario.asked.empty()) {
    std::optional<JobId> stranger;
    if (scenario.looks_are_events)
      stranger = JobId{static_cast<std::uint32_t>(trace.jobs.size() - 1)};
    executor = std::make_unique<AskedExecutor>(std::move(executor), scenario.asked, stranger);
  }
  Engine engine{{.trace = scenario.open ? slots : trace,
                 .cluster = *cluster,
                 .policy = policy,
                 .placement = **placement,
                 .estimator = **estimator,
                 .executor = *executor,
                 .believed = rates,
                 .observer = observer,
                 .tuner = scenario.tuner,
                 .power = scenario.power,
                 .seed = scenario.seed,
                 .open = scenario.open}};
  if (observer != nullptr) {
    observer->engine = &engine;
    observer->trace = &trace;
  }
  const auto done = engine.run();
  if (!done) ADD_FAILURE() << done.error().text();

  Outcome outcome;
  const std::size_t n = scenario.jobs.size();
  outcome.start.assign(n, -1);
  outcome.finish.assign(n, -1);
  outcome.preemptions.assign(n, 0);
  outcome.migrations.assign(n, 0);
  outcome.suspensions.assign(n, 0);
  outcome.state.assign(n, JobState::Unknown);
  outcome.held.assign(n, 0);
  outcome.overhead.assign(n, 0);
  outcome.work.assign(n, 0);
  const JobTable& jobs = engine.jobs();
  for (std::uint32_t i = 0; i < n; ++i) {
    const JobId job{i};
    const auto at =
        static_cast<std::size_t>(std::stoul(std::string(trace.text(trace.jobs[i].id)))) - 1;
    if (jobs.first_start[job] != kNever) outcome.start[at] = to_seconds(jobs.first_start[job]);
    if (jobs.finished[job] != kNever) outcome.finish[at] = to_seconds(jobs.finished[job]);
    outcome.preemptions[at] = static_cast<int>(jobs.preemptions[job]);
    outcome.migrations[at] = static_cast<int>(jobs.migrations[job]);
    outcome.suspensions[at] = static_cast<int>(jobs.suspensions[job]);
    outcome.state[at] = jobs.state[job];
    outcome.held[at] = to_seconds(jobs.held[job]);
    outcome.work[at] = to_seconds(jobs.work[job]);
    outcome.overhead[at] = to_seconds(jobs.overhead[job]);
    outcome.total_preemptions += outcome.preemptions[at];
    outcome.sum_jct += outcome.finish[at] - scenario.jobs[at].submit;
    outcome.makespan = std::max(outcome.makespan, outcome.finish[at]);
  }
  for (const RejectedJob& rejected : engine.rejected()) outcome.rejected.push_back(rejected.reason);
  outcome.digest = engine.digest();
  return outcome;
}

std::vector<JobSpec> t6() {
  return {{0, 3, 10}, {1, 2, 4}, {2, 4, 7}, {3, 1, 12}, {4, 1, 11}, {5, 1, 4}};
}

}  // namespace berth::test
