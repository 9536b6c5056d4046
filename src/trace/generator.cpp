// Jobs in cells (virtual cluster and size), cells in bursts of like submissions, bursts on a
// calendar. Each step draws from a stream of its own, so that an option of one step leaves the
// numbers of the others as they were.

#include "trace/generator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/portable_math.h"
#include "base/rng.h"
#include "base/suggest.h"
#include "trace/generator_calendar.h"
#include "trace/generator_labels.h"
#include "trace/generator_tables.h"
#include "trace/trace_builder.h"

namespace berth {

namespace {

Result<const SourceTable*> find_source(std::string_view like) {
  if (like == "venus") like = "helios";
  std::vector<std::string> known;
  for (const SourceTable& source : source_tables()) {
    if (source.name == like) return &source;
    known.emplace_back(source.name);
  }
  return fail(
      fmt::format("like: no statistics for {}{}", in_quotes(like), suggestion(like, known)));
}

bool is_share(double value) { return value >= 0 && value <= 1; }

// All faults at once; nothing is drawn before the options are good.
Result<void> check_options(const GenerateOptions& options) {
  constexpr std::size_t kMostJobs = 100'000'000;
  Error error;
  const auto require = [&error](bool holds, const char* message) {
    if (!holds) error.messages.emplace_back(message);
  };
  require(options.jobs >= 1 && options.jobs <= kMostJobs, "jobs must lie between 1 and 100000000");
  require(options.total_gpus >= 0 && options.total_gpus <= 1e9,
          "total_gpus must lie between 0 and 1e9");
  require(options.total_gpus == 0 || options.total_gpus >= 1,
          "the cluster must have at least one GPU");
  require(options.gpus_per_node >= 0 && options.gpus_per_node <= 1'000'000,
          "gpus_per_node must lie between 0 and 1000000");
  require(is_share(options.burst), "burst must lie between 0 and 1");
  require(is_share(options.diurnal), "diurnal must lie between 0 and 1");
  require(is_share(options.deadlines), "deadlines must lie between 0 and 1");
  require(options.users >= 0 && options.users <= 10'000'000,
          "users must lie between 0 and 10000000");
  if (options.load) {
    require(*options.load > 0 && *options.load <= 1000, "load must be above 0 and at most 1000");
    require(options.total_gpus >= 1,
            "load needs the number of GPUs of the cluster (pass --cluster)");
  }
  if (error.messages.empty()) return {};
  return tl::unexpected<Error>(std::move(error));
}

// Jobs of one virtual cluster and one size.
struct Cell {
  int cluster;
  int gpus;
  double share;
  std::size_t jobs = 0;
  std::array<double, kLevels.size()> log_seconds{};  // run times at kLevels
};

class Generator {
 public:
  Generator(const GenerateOptions& options, const SourceTable& source)
      : options_(options), source_(source), root_(options.seed) {}

  Result<Trace> generate() {
    choose_cells();
    if (cells_.empty())
      return fail("every job of the source is larger than the cluster (use a larger one)");
    make_runs();
    draw_durations();
    place_runs();
    return finish();
  }

 private:
  // Sizes that do not fit the cluster are dropped, and the others take over their share: the same
  // as drawing again.
  void choose_cells() {
    const int most = options_.total_gpus == 0 ? std::numeric_limits<int>::max()
                                              : static_cast<int>(options_.total_gpus);
    for (const SizeRow& row : source_.sizes) {
      const int gpus = whole_nodes(row.gpus);
      const DurationRow* durations = durations_of(row.cluster, size_class_of(row.gpus));
      if (gpus > most || durations == nullptr) continue;
      Cell& cell =
          cells_.emplace_back(Cell{.cluster = row.cluster, .gpus = gpus, .share = row.share});
      std::ranges::transform(durations->seconds, cell.log_seconds.begin(), portable_log);
    }
    share_out_jobs();
  }

  [[nodiscard]] int whole_nodes(int gpus) const {
    const int node = options_.gpus_per_node;
    // Small gangs share nodes; larger ones are taken to ask for whole nodes.
    if (gpus <= 8 || node <= 0) return gpus;
    return (gpus + node - 1) / node * node;
  }

  [[nodiscard]] const DurationRow* durations_of(int cluster, std::size_t size_class) const {
    const DurationRow* any = nullptr;
    for (const DurationRow& row : source_.durations) {
      if (row.size_class != size_class) continue;
      if (row.cluster == cluster) return &row;
      if (row.cluster == -1) any = &row;
    }
    // Very large jobs have rows of their own only where the source has many of them.
    return any != nullptr || size_class == 0 ? any : durations_of(cluster, size_class - 1);
  }

  // Evenly spaced points on the cumulative shares: every cell gets its share to within one job.
  void share_out_jobs() {
    double total = 0;
    for (const Cell& cell : cells_) total += cell.share;
    Rng rng = root_.fork("cells");
    const auto jobs = static_cast<double>(options_.jobs);
    // Systematic sampling: one random offset, then equal steps. Drawing each job by itself would
    // scatter the shares.
    const double offset = rng.uniform();
    double cumulative = 0;
    std::size_t given = 0;
    for (Cell& cell : cells_) {
      cumulative += cell.share;
      const double upto = std::min(std::ceil(cumulative / total * jobs - offset), jobs);
      const std::size_t target =
          // The last cell takes the rest: rounding must not lose a job.
          &cell == &cells_.back() ? options_.jobs : static_cast<std::size_t>(std::max(upto, 0.0));
      cell.jobs = std::max(target, given) - given;
      given += cell.jobs;
    }
  }

  void make_runs() {
    Rng rng = root_.fork("runs");
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const RunShares weights =
          run_weights(std::min(size_class_of(cells_[i].gpus), kRunClasses - 1));
      // One run must not be most of its cell: its run times would stand for the whole size class.
      const std::size_t longest = std::max<std::size_t>(8, cells_[i].jobs / 12);
      for (std::size_t left = cells_[i].jobs; left > 0;) {
        const std::size_t bin = rng.weighted(weights);
        const auto width = static_cast<std::uint64_t>(kRunBins[bin + 1] - kRunBins[bin]);
        const std::size_t drawn = static_cast<std::size_t>(kRunBins[bin]) + rng.below(width);
        const std::size_t length = std::min({drawn, left, longest});
        runs_.push_back({.cell = i, .length = length});
        left -= length;
      }
    }
  }

  // The table gives the share of jobs in bursts of each length. Dividing by the length gives the
  // share of bursts.
  [[nodiscard]] RunShares run_weights(std::size_t size_class) const {
    const RunShares& shares = source_.runs[size_class];
    RunShares weights{};
    double in_runs = 0;
    for (std::size_t bin = 1; bin < shares.size(); ++bin) {
      const double mean_length = 0.5 * (kRunBins[bin] + kRunBins[bin + 1] - 1);
      weights[bin] = options_.burst * shares[bin] / mean_length;
      in_runs += options_.burst * shares[bin];
    }
    weights[0] = std::max(0.0, 1 - in_runs);
    return weights;
  }

  // Each burst takes a slice of its cell's quantile levels, as wide as its share of the cell's
  // jobs, so levels are uniform over the jobs. The jobs of a burst lie around one level; reflection
  // at the ends keeps them uniform.
  void draw_durations() {
    Rng rng = root_.fork("durations");
    jobs_.reserve(options_.jobs);
    std::size_t run = 0;
    for (const Cell& cell : cells_) {
      const double rotation = rng.uniform();
      double before = 0;
      for (std::size_t done = 0; done < cell.jobs; done += runs_[run].length, ++run) {
        const auto length = static_cast<double>(runs_[run].length);
        const double level =
            rotation + (before + rng.uniform() * length) / static_cast<double>(cell.jobs);
        before += length;
        const double center = level - std::floor(level);
        for (std::size_t i = 0; i < runs_[run].length; ++i) {
          const double spread = length == 1 ? 0 : rng.normal() * source_.run_spread;
          add_job(run, cell, seconds_at(cell.log_seconds, reflected(center + spread)));
        }
      }
    }
  }

  static double reflected(double level) {
    const double wrapped = level - 2 * std::floor(level / 2);  // [0, 2)
    return wrapped <= 1 ? wrapped : 2 - wrapped;
  }

  static double seconds_at(std::span<const double> log_seconds, double level) {
    const auto above =
        static_cast<std::size_t>(std::ranges::upper_bound(kLevels, level) - kLevels.begin());
    const std::size_t i = std::clamp<std::size_t>(above, 1, kLevels.size() - 1);
    const double part = (level - kLevels[i - 1]) / (kLevels[i] - kLevels[i - 1]);
    const double low = log_seconds[i - 1];
    // Whole seconds, at least one: a job that takes no time puts no load on a cluster.
    return std::max(1.0, std::round(portable_exp(low + part * (log_seconds[i] - low))));
  }

  void add_job(std::size_t run, const Cell& cell, double seconds) {
    TraceJob job;
    job.gpus = cell.gpus;
    job.duration = seconds_to_duration(seconds);
    gpu_seconds_ += seconds * cell.gpus;
    jobs_.push_back({.job = job, .run = run, .submit_seconds = 0});
  }

  void place_runs() {
    spread_jobs_in_runs();
    const double span = span_seconds();
    const Calendar calendar(source_, options_.diurnal, span, root_.fork("days"));
    const std::vector<double> instants = calendar.place(runs_, root_.fork("hours"));
    for (DraftJob& job : jobs_) {
      const double length = runs_[job.run].seconds;
      const double start = instants[job.run] - length / 2;  // its middle at its instant
      job.submit_seconds =
          std::clamp(start, 0.0, std::max(0.0, span - length)) + std::min(job.submit_seconds, span);
    }
    pin_ends(span);
  }

  void spread_jobs_in_runs() {
    Rng rng = root_.fork("gaps");
    std::size_t job = 0;
    for (DraftRun& run : runs_) {
      // Longer bursts have shorter gaps in every source; the exponent was fitted to it.
      const double gap =
          source_.gap_seconds * portable_pow(static_cast<double>(run.length), -source_.gap_falloff);
      double at = 0;
      for (std::size_t i = 0; i < run.length; ++i, ++job) {
        jobs_[job].submit_seconds = run.seconds = at;
        at += std::min(rng.exponential(gap), 29.0);  // a longer pause would end the run
      }
    }
  }

  // From the wanted load, or else the source's own rate.
  [[nodiscard]] double span_seconds() const {
    if (options_.load) return gpu_seconds_ / (*options_.load * options_.total_gpus);
    return static_cast<double>(options_.jobs) / source_.jobs_per_day * 86'400;
  }

  // The first and the last submission are exactly a span apart, so the load is exact too.
  // Stretching all times instead would move the later days' jobs into other hours.
  void pin_ends(double span) {
    const auto by_time = [](const DraftJob& job) { return job.submit_seconds; };
    // Moved alone: a job at either end changes the picture less than stretching everything.
    const auto [first, last] = std::ranges::minmax_element(jobs_, {}, by_time);
    first->submit_seconds = 0;
    if (first != last) last->submit_seconds = span;
    const bool whole_seconds = span >= 10'000;  // rounding moves the load by less than 0.01 %
    for (DraftJob& job : jobs_) {
      job.job.submit =
          seconds_to_time(whole_seconds ? std::round(job.submit_seconds) : job.submit_seconds);
    }
  }

  Result<Trace> finish() {
    Trace trace;
    trace.source = fmt::format("generated like {} (seed {})", source_.name, options_.seed);
    trace.format = "generated";
    std::vector<int> cluster_of_run;
    cluster_of_run.reserve(runs_.size());
    for (const DraftRun& run : runs_) cluster_of_run.push_back(cells_[run.cell].cluster);
    label_jobs(trace, {options_, source_, cluster_of_run, jobs_, root_});
    trace.jobs.reserve(jobs_.size());
    std::vector<std::pair<Time, std::size_t>> order;
    order.reserve(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) order.emplace_back(jobs_[i].job.submit, i);
    // By time, then by the order of drawing: a total order, so that ids are the same everywhere.
    std::ranges::sort(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      TraceJob& job = jobs_[order[i].second].job;
      job.id = trace.names.intern(fmt::format_int(i + 1).c_str());
      trace.jobs.push_back(job);
    }
    trace.normalise();
    return trace;
  }

  const GenerateOptions& options_;
  const SourceTable& source_;
  Rng root_;
  std::vector<Cell> cells_;
  std::vector<DraftRun> runs_;  // in the order of the cells
  std::vector<DraftJob> jobs_;  // in the order of the runs until finish()
  double gpu_seconds_ = 0;
};

}  // namespace

Result<Trace> generate_trace(const GenerateOptions& options) {
  BERTH_TRY(const SourceTable* source, find_source(options.like));
  BERTH_TRY_VOID(check_options(options));
  return Generator{options, *source}.generate();
}

std::vector<FormatInfo> generator_sources() {
  std::vector<FormatInfo> sources;
  for (const SourceTable& source : source_tables()) {
    sources.push_back({std::string(source.name), std::string(source.description)});
  }
  return sources;
}

}  // namespace berth
