#include "passes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "core/engine.h"
#include "placements/placements.h"
#include "policies/registry.h"
#include "reference.h"
#include "sim/sim_executor.h"
#include "trace/generator.h"

namespace berth::bench {

namespace {

constexpr double kShortest = 600;  // seconds; run times are log-uniform between the two
constexpr double kLongest = 86400;
constexpr std::array kSizes{1, 1, 2, 4, 8, 8, 16};  // mean 40/7

/// The jobs of a Philly-like trace with models and some deadlines, but with sizes, run times and
/// arrivals that keep `active` of them about.
Result<Trace> steady_trace(const PassCase& each) {
  GenerateOptions options;
  const double log_range = std::log(kLongest / kShortest);
  const double mean = (kLongest - kShortest) / log_range;
  const double interval = mean / static_cast<double>(each.active);
  options.jobs = each.active + static_cast<std::size_t>(60 * each.minutes / interval) + 100;
  options.models = true;
  options.deadlines = 0.3;
  BERTH_TRY(Trace trace, generate_trace(options));
  Rng rng{each.active};
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    TraceJob& job = trace.jobs[i];
    const double run = kShortest * std::exp(rng.uniform() * log_range);
    // Seen at any moment, long jobs are the likelier ones to be met, each somewhere in its run.
    const double met = (kShortest + rng.uniform() * (kLongest - kShortest)) * rng.uniform();
    const bool is_first = i < each.active;
    job.gpus = kSizes[rng.below(kSizes.size())];
    job.duration = seconds_to_duration(is_first ? std::max(1.0, met) : run);
    const auto submit = is_first ? 0.0 : interval * static_cast<double>(i - each.active + 1);
    job.submit = seconds_to_time(submit);
    if (job.deadline) job.deadline = job.submit + job.duration * 3;
  }
  trace.normalise();
  return trace;
}

/// The policy itself, with a clock around everything it does at one instant.
class TimedPolicy final : public Policy {
 public:
  TimedPolicy(Policy& inner, const PassCase& each, int report_to)
      : inner_(inner), case_(each), report_to_(report_to) {}

  [[nodiscard]] std::string_view name() const noexcept override { return inner_.name(); }
  [[nodiscard]] PolicyTraits traits() const noexcept override { return inner_.traits(); }
  void begin(const View& view) override {
    inner_.begin(view);
    began_ = processor_seconds();
  }
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override {
    start_clock();
    return inner_.admit(view, job);
  }
  void on_arrival(const View& view, JobId job) override {
    start_clock();
    ++active_;
    inner_.on_arrival(view, job);
  }
  void on_departure(const View& view, JobId job) override {
    start_clock();
    --active_;
    inner_.on_departure(view, job);
  }
  void on_requeue(const View& view, JobId job) override {
    start_clock();
    inner_.on_requeue(view, job);
  }
  void on_capacity_change(const View& view, NodeId node) override {
    start_clock();
    inner_.on_capacity_change(view, node);
  }
  void decide(const View& view, Plan& plan, Rng& rng) override {
    start_clock();
    inner_.decide(view, plan, rng);
  }
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    const auto wakeup = inner_.next_wakeup(view);
    const double now = processor_seconds();
    note(now - clock_, view);
    clock_ = 0;
    minutes_ = to_seconds(view.now) / 60;
    if (minutes_ >= case_.minutes || now - began_ > case_.budget_seconds) report();
    return wakeup;
  }

  /// The measuring is over: says what was found and ends the process.
  [[noreturn]] void report() {
    PassTimes times;
    std::ranges::sort(spent_);
    const auto at = [&](double share) {
      return spent_[static_cast<std::size_t>(share * static_cast<double>(spent_.size() - 1))];
    };
    times.first_ms = first_ * 1e3;
    if (!spent_.empty()) {
      const auto passes = static_cast<double>(spent_.size());
      times.ok = true;
      times.passes = spent_.size();
      times.minutes = minutes_;
      times.active = active_sum_ / passes;
      times.busy_gpus = busy_sum_ / passes;
      times.p50_ms = at(0.5) * 1e3;
      times.p99_ms = at(0.99) * 1e3;
      times.max_ms = spent_.back() * 1e3;
    } else {
      std::snprintf(times.error, sizeof times.error, "the first pass took %.1f s", first_);
    }
    const auto written = write(report_to_, &times, sizeof times);
    _exit(written == static_cast<ssize_t>(sizeof times) ? 0 : 1);
  }

 private:
  void start_clock() {
    if (clock_ == 0) clock_ = processor_seconds();
  }
  void note(double seconds, const View& view) {
    if (first_ == 0) {
      first_ = seconds;
      return;
    }
    spent_.push_back(seconds);
    active_sum_ += active_;
    busy_sum_ += static_cast<double>(view.cluster.usable_gpus() - view.cluster.free_gpus());
  }

  Policy& inner_;
  PassCase case_;
  int report_to_;
  double began_ = 0;
  double clock_ = 0;  // when this pass began; 0: it has not
  double first_ = 0;
  double minutes_ = 0;  // simulated
  double active_ = 0;
  double active_sum_ = 0;
  double busy_sum_ = 0;
  std::vector<double> spent_;  // seconds by pass
};

std::string run_case(const PassCase& each, int report_to) {
  const std::size_t half = each.nodes / 2;
  const auto cluster = load_cluster(
      fmt::format("{}x8:v100,{}x8:a100", half, std::max<std::size_t>(1, each.nodes - half)));
  if (!cluster) return cluster.error().text();
  const auto trace = steady_trace(each);
  if (!trace) return trace.error().text();
  const auto entry = find_policy(each.policy);
  if (!entry) return entry.error().text();
  const auto policy = make_policy(each.policy);
  const auto placement = make_placement("best-fit");
  const auto estimator = make_estimator((*entry)->estimator, 1);
  if (!policy || !placement || !estimator) return "cannot make the policy";
  const RateModel rates{built_in_profiles(), *cluster, Effects{}};
  SimOptions sim;
  sim.truth = &rates;
  SimExecutor executor{*trace, *cluster, sim};
  TimedPolicy timed{**policy, each, report_to};
  Engine engine{{.trace = *trace,
                 .cluster = *cluster,
                 .policy = timed,
                 .placement = **placement,
                 .estimator = **estimator,
                 .executor = executor,
                 .believed = rates}};
  if (const auto done = engine.run(); !done) return done.error().text();
  timed.report();
}

}  // namespace

PassTimes measure_passes(const PassCase& each) {
  PassTimes result;
  std::snprintf(result.error, sizeof result.error, "the process that measured it died");
  int ends[2];
  if (pipe(ends) != 0) return result;
  const pid_t child = fork();
  if (child == 0) {
    PassTimes failed;
    std::snprintf(failed.error, sizeof failed.error, "%s", run_case(each, ends[1]).c_str());
    const auto written = write(ends[1], &failed, sizeof failed);
    _exit(written == static_cast<ssize_t>(sizeof failed) ? 0 : 1);
  }
  close(ends[1]);
  PassTimes received;
  if (read(ends[0], &received, sizeof received) == static_cast<ssize_t>(sizeof received))
    result = received;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return result;
}

}  // namespace berth::bench
