// Runs every policy under every seed, as many at once as there are threads. Each run is its own
// engine; trace and cluster are shared and only read. Results land in slots fixed beforehand, so
// that what is printed does not depend on who finished first.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/policy_settings.h"
#include "apps/prepare.h"
#include "apps/progress.h"
#include "metrics/recorded.h"
#include "report/figures.h"
#include "report/run_output.h"
#include "report/table.h"

namespace berth {

namespace {

class Comparison {
 public:
  Comparison(const Prepared& prepared, std::size_t seeds, OutputDirectory* directory,
             ProgressBar& bar)
      : prepared_(prepared),
        seeds_(seeds),
        directory_(directory),
        bar_(bar),
        slots_(prepared.specs.size()) {
    for (Slot& slot : slots_) {
      slot.seeds.resize(seeds);
      slot.errors.resize(seeds);
      slot.left = seeds;
    }
  }

  void run_all(std::size_t threads) {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < std::min(threads, slots_.size() * seeds_); ++i)
      workers.emplace_back([this] { work(); });
  }  // joins

  /// The runs that ended well, in order of the policies.
  [[nodiscard]] std::vector<RunData> take_runs() {
    std::vector<RunData> runs;
    for (Slot& slot : slots_) {
      if (!slot.failed()) runs.push_back(std::move(slot.run));
    }
    return runs;
  }

  /// By JobId: jobs that every policy rejected. No policy that failed has a say.
  [[nodiscard]] std::vector<bool> rejected_by_all() const {
    std::vector<bool> all;
    for (const Slot& slot : slots_) {
      if (slot.failed()) continue;
      if (all.empty()) all.assign(slot.rejected.size(), true);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = all[i] && slot.rejected[i];
    }
    return all;
  }

  [[nodiscard]] Error errors() const {
    Error all;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      for (const Error& error : slots_[i].errors) {
        for (const std::string& message : error.messages) {
          all.messages.push_back(fmt::format("{}: {}", prepared_.specs[i].policy, message));
        }
      }
    }
    return all;
  }

 private:
  struct Slot {                    // of one policy
    RunData run;                   // its first seed, in the end its mean
    std::vector<bool> rejected{};  // by JobId, under the first seed
    std::vector<Summary> seeds;
    std::vector<Error> errors;
    std::atomic<std::size_t> left;
    [[nodiscard]] bool failed() const {
      return std::ranges::any_of(errors,
                                 [](const Error& error) { return !error.messages.empty(); });
    }
  };

  void work() {
    const std::size_t tasks = slots_.size() * seeds_;
    for (std::size_t task = next_++; task < tasks; task = next_++) {
      const std::size_t policy = task / seeds_;
      run(policy, task % seeds_, task);
      bar_.finished(task);
      if (--slots_[policy].left == 0) conclude(slots_[policy]);
    }
  }

  void run(std::size_t policy, std::size_t seed, std::size_t task) {
    RunSpec spec = prepared_.specs[policy];
    spec.seed += seed;
    if (directory_ != nullptr && seed == 0) spec.recording = Recording::Everything;
    auto planned = make_run(prepared_.trace, prepared_.cluster, spec);
    auto data = planned ? planned->run(bar_.of_run(task))
                        : Result<RunData>{tl::unexpected<Error>(planned.error())};
    Slot& slot = slots_[policy];
    if (!data) {
      slot.errors[seed] = data.error();
      return;
    }
    if (seed == 0) {
      for (const JobOutcome& job : data->jobs.rows)
        slot.rejected.push_back(job.state == JobState::Rejected);
    }
    if (directory_ == nullptr) data->drop_rows();
    slot.seeds[seed] = data->summary;
    if (seed == 0) slot.run = std::move(*data);
  }

  /// All seeds of a policy are there: write what only the files need, and forget it.
  void conclude(Slot& slot) {
    if (slot.failed()) return;
    if (seeds_ > 1) combine_seeds(slot.run, slot.seeds);
    if (directory_ == nullptr) return;
    const std::lock_guard lock(writing_);
    if (const auto written =
            directory_->write_run(slot.run, directory_name(slot.run.summary.label));
        !written) {
      slot.errors[0] = written.error();
    }
    slot.run.drop_rows();
  }

  const Prepared& prepared_;
  std::size_t seeds_;
  OutputDirectory* directory_;  // may be absent
  ProgressBar& bar_;
  std::vector<Slot> slots_;  // by policy
  std::atomic<std::size_t> next_ = 0;
  std::mutex writing_;
};

bool has_record(const Trace& trace) {
  return std::ranges::any_of(trace.jobs,
                             [](const TraceJob& job) { return job.recorded.has_value(); });
}

Result<std::string> baseline_of(const std::string& wish, const std::vector<std::string>& policies,
                                const Trace& trace) {
  const std::string name = wish.empty() ? "fifo" : wish;
  if (name == kRecordedPolicy || name == kRecordedLabel) {
    if (has_record(trace)) return std::string(kRecordedLabel);
    return fail(
        fmt::format("--baseline {}: the trace does not say when its jobs started and ended", wish));
  }
  if (std::ranges::find(policies, name) != policies.end()) return name;
  if (wish.empty()) return policies.front();
  return fail(
      fmt::format("--baseline {}: not among --policies {}", wish, fmt::join(policies, ",")));
}

Result<void> finish_files(OutputDirectory& directory, std::span<const RunData> runs,
                          const std::string& baseline, bool with_figures) {
  BERTH_TRY_VOID(directory.write_report(runs, {.title = {}, .baseline = baseline}));
  if (with_figures) {
    for (const Figure& figure : figures(runs)) {
      BERTH_TRY_VOID(directory.write(fmt::format("figures/{}.svg", figure.name), figure.svg));
    }
  }
  return directory.commit();
}

/// What a reader must know before comparing the row with the others.
void tell_recorded(const Recorded& recorded, const Cluster& cluster) {
  print_note(
      "note: as recorded is no simulation: it is when the jobs really started and ended, by the "
      "trace's own times");
  if (recorded.unknown > 0)
    print_note(fmt::format(
        "note: as recorded: of {} jobs the trace does not tell it; they count as unfinished there",
        recorded.unknown));
  if (recorded.cut > 0)
    print_note(fmt::format(
        "note: as recorded: {} jobs were not over when the trace was taken; in every row they end "
        "with the run time they had then",
        recorded.cut));
  if (recorded.restarted > 0)
    print_note(fmt::format(
        "note: as recorded: {} jobs were put back into the queue after a run; policies run the sum "
        "of their runs",
        recorded.restarted));
  if (recorded.most_gpus > cluster.total_gpus())
    print_note(fmt::format(
        "note: as recorded: jobs held {} GPUs at once, and --cluster has {}: they ran on another "
        "cluster, so the rows do not compare",
        recorded.most_gpus, cluster.total_gpus()));
}

/// The row of what really happened, before those of the policies; nothing to do if nobody knows.
Result<void> add_recorded(const Comparison& comparison, const Prepared& prepared,
                          OutputDirectory* directory, std::vector<RunData>& runs,
                          std::optional<Recorded>& recorded) {
  recorded = recorded_run(prepared.trace, prepared.cluster, comparison.rejected_by_all());
  if (!recorded) return {};
  if (directory != nullptr) {
    BERTH_TRY_VOID(
        directory->write_run(recorded->run, directory_name(recorded->run.summary.label)));
  }
  recorded->run.drop_rows();
  runs.insert(runs.begin(), recorded->run);
  return {};
}

/// Policies mostly reject the same jobs: one line for all of them, one more for each that differs.
void tell_rejected(std::span<const RunData> runs) {
  std::optional<double> told;
  for (const RunData& run : runs) {
    const double count = run.summary.rejected.value_or(0);
    if (run.rejected.empty() || told == count) continue;
    told = count;
    print_note(fmt::format("{}: {:.0f} jobs were rejected; the first, job {}: {}",
                           run.summary.label, count, run.rejected.front().first,
                           run.rejected.front().second));
  }
}

}  // namespace

Exit execute(const CompareOptions& options) {
  const auto policies = policy_list(options.policies);
  if (!policies) return complain(Exit::Misuse, policies.error());
  auto prepared = prepare(options.input, options.world, *policies);
  if (!prepared) return complain(Exit::Misuse, prepared.error());
  const auto baseline = baseline_of(options.baseline, *policies, prepared->trace);
  if (!baseline) return complain(Exit::Misuse, baseline.error());
  if (const auto output = check_output(options.output); !output)
    return complain(Exit::Misuse, output.error());
  if (!options.output.quiet) tell_notes(prepared->trace, prepared->read);

  std::optional<OutputDirectory> directory;
  if (!options.output.out.empty()) {
    auto created = OutputDirectory::create(
        options.output.out, options.output.force ? Overwrite::Anything : Overwrite::BerthRunsOnly);
    if (!created) return complain(Exit::Misuse, created.error());
    directory.emplace(std::move(*created));
  }
  const std::size_t threads =
      options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  ProgressBar bar(policies->size() * options.seeds, prepared->trace.jobs.size(),
                  !options.output.no_progress && !options.output.quiet);
  Comparison comparison(*prepared, options.seeds, directory ? &*directory : nullptr, bar);
  comparison.run_all(threads);
  bar.erase();

  const Error errors = comparison.errors();
  std::vector<RunData> runs = comparison.take_runs();
  if (runs.empty()) return complain(Exit::Failure, errors);
  std::optional<Recorded> recorded;
  if (const auto added =
          add_recorded(comparison, *prepared, directory ? &*directory : nullptr, runs, recorded);
      !added) {
    return complain(Exit::Failure, added.error());
  }
  if (directory) {
    if (const auto written = finish_files(*directory, runs, *baseline, options.output.figures);
        !written) {
      return complain(Exit::Failure, written.error());
    }
    if (!options.output.quiet)
      print_note(fmt::format("wrote {0} (open {0}/report.html in a browser)", options.output.out));
  }
  if (!options.output.quiet) tell_rejected(runs);
  if (!options.output.quiet && recorded) tell_recorded(*recorded, prepared->cluster);
  const Exit printed = write_stdout(options.output.json ? summaries_json(runs) + "\n"
                                                        : comparison_table(runs, *baseline));
  return errors.messages.empty() ? printed : complain(Exit::Failure, errors);
}

}  // namespace berth
