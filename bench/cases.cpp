#include "cases.h"

#include <cstdio>
#include <memory>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/engine.h"
#include "placements/placements.h"
#include "policies/registry.h"
#include "reference.h"
#include "sim/sim_executor.h"
#include "trace/generator.h"
#include "trace/reader.h"
#include "trace/writer.h"

namespace berth::bench {

namespace {

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

Result<Trace> trace_for(const Case& each, const Cluster& cluster) {
  GenerateOptions options;
  options.like = "philly";
  options.jobs = each.jobs;
  options.total_gpus = static_cast<double>(cluster.total_gpus());
  options.gpus_per_node = cluster.largest_node();
  options.load = each.load;
  options.seed = 1;
  return generate_trace(options);
}

/// Watches the queue and the allocator without changing the run.
class Watcher final : public RunObserver {
 public:
  explicit Watcher(std::size_t jobs) : half_(jobs / 2) {}
  void append(Time, const Action& action) override {
    if (action.kind != ActionKind::Start) return;
    if (++starts_ == half_) at_half_ = allocation_count();
    late_ += starts_ > half_ ? 1U : 0U;
  }
  [[nodiscard]] std::uint64_t late_allocations() const {
    return starts_ > half_ ? allocation_count() - at_half_ : 0;
  }
  [[nodiscard]] std::uint64_t late_starts() const { return late_; }

 private:
  std::size_t half_;
  std::size_t starts_ = 0;
  std::uint64_t at_half_ = 0;
  std::uint64_t late_ = 0;
};

std::uint64_t largest_queue(const Engine& engine) {
  std::vector<std::pair<Time, int>> changes;
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    const JobId job{i};
    if (engine.jobs().first_start[job] == kNever) continue;
    changes.emplace_back(engine.jobs().submitted[job], 1);
    changes.emplace_back(engine.jobs().first_start[job], -1);
  }
  std::ranges::sort(changes);
  std::int64_t now = 0;
  std::int64_t largest = 0;
  for (const auto& [time, change] : changes) largest = std::max(largest, now += change);
  return static_cast<std::uint64_t>(largest);
}

Measured run_case(const Case& each) {
  Measured result;
  const auto refuse = [&](const std::string& why) {
    std::snprintf(result.error, sizeof result.error, "%s", why.c_str());
    return result;
  };
  const long empty_kib = peak_kib();
  auto cluster = load_cluster(each.cluster);
  if (!cluster) return refuse(cluster.error().text());
  auto trace = trace_for(each, *cluster);
  if (!trace) return refuse(trace.error().text());
  auto policy = make_policy(each.policy);
  auto placement = make_placement(each.placement);
  auto estimator = make_estimator("oracle", 1);
  if (!policy || !placement || !estimator) return refuse("cannot make the policy");
  const RateModel rates{ProfileSet{}, *cluster, Effects{}};
  SimOptions sim;
  if ((*policy)->traits().shares_devices || (*policy)->traits().resizes) sim.truth = &rates;
  SimExecutor executor{*trace, *cluster, sim};
  Watcher watcher{trace->jobs.size()};
  const double start = processor_seconds();
  Engine engine{{.trace = *trace,
                 .cluster = *cluster,
                 .policy = **policy,
                 .placement = **placement,
                 .estimator = **estimator,
                 .executor = executor,
                 .believed = rates,
                 .observer = &watcher}};
  if (const auto done = engine.run(); !done) return refuse(done.error().text());
  result.seconds = processor_seconds() - start;
  result.late_allocations = watcher.late_allocations();
  result.late_passes = watcher.late_starts();
  result.bytes_per_job = 1024.0 * static_cast<double>(peak_kib() - empty_kib) /
                         static_cast<double>(trace->jobs.size());
  result.events = engine.events();
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) {
    result.avg_jct +=
        to_seconds(engine.jobs().finished[JobId{i}] - engine.jobs().submitted[JobId{i}]);
  }
  result.avg_jct /= static_cast<double>(trace->jobs.size());
  result.largest_queue = largest_queue(engine);
  std::snprintf(result.digest, sizeof result.digest, "%s", engine.digest().c_str());
  result.ok = true;
  return result;
}

}  // namespace

Measured measure(const Case& each) {
  Measured result;
  int ends[2];
  if (pipe(ends) != 0) return result;
  const pid_t child = fork();
  if (child == 0) {
    const Measured measured = run_case(each);
    const auto written = write(ends[1], &measured, sizeof measured);
    _exit(written == static_cast<ssize_t>(sizeof measured) ? 0 : 1);
  }
  close(ends[1]);
  Measured received;
  if (read(ends[0], &received, sizeof received) == static_cast<ssize_t>(sizeof received))
    result = received;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return result;
}

double measure_csv(std::size_t rows) {
  const auto cluster = *load_cluster("321x2,231x8");
  auto trace = trace_for({.policy = "", .cluster = "", .jobs = rows}, cluster);
  if (!trace) return -1;
  const std::string text = trace_to_csv(*trace);
  trace = Trace{};
  const double start = processor_seconds();
  const auto read = parse_trace(text, "bench.csv", {});
  const double seconds = processor_seconds() - start;
  return read && read->jobs.size() == rows ? seconds : -1;
}

}  // namespace berth::bench
