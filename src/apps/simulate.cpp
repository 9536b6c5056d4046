#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/policy_settings.h"
#include "apps/prepare.h"
#include "apps/progress.h"
#include "report/figures.h"
#include "report/run_output.h"
#include "report/table.h"

namespace berth {

namespace {

void tell_rejected(const RunData& run) {
  if (run.rejected.empty()) return;
  const double count = run.summary.rejected.value_or(static_cast<double>(run.rejected.size()));
  print_note(
      fmt::format("{:.0f} of {:.0f} jobs were rejected:", count, run.summary.jobs.value_or(0)));
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, run.rejected.size()); ++i) {
    print_note(fmt::format("  job {}: {}", run.rejected[i].first, run.rejected[i].second));
  }
  if (count > kShown) print_note(fmt::format("  and {:.0f} more", count - kShown));
}

std::string block(const Prepared& prepared, const RunData& run) {
  return fmt::format("{} with {} placement: {} jobs of {} on {} ({} GPUs), digest {}\n\n{}",
                     run.summary.label, run.summary.placement, prepared.trace.jobs.size(),
                     prepared.trace.source, prepared.cluster.name, prepared.cluster.total_gpus(),
                     run.summary.digest, summary_table(run.summary));
}

Result<void> write_all(const SimulateOptions& options, const RunData& run) {
  BERTH_TRY(
      auto directory,
      OutputDirectory::create(options.output.out, options.output.force ? Overwrite::Anything
                                                                       : Overwrite::BerthRunsOnly));
  BERTH_TRY_VOID(directory.write_run(run));
  BERTH_TRY_VOID(directory.write_report({&run, 1}, {}));
  if (options.output.figures) {
    for (const Figure& figure : figures({&run, 1})) {
      BERTH_TRY_VOID(directory.write(fmt::format("figures/{}.svg", figure.name), figure.svg));
    }
  }
  return directory.commit();
}

}  // namespace

Exit execute(const SimulateOptions& options) {
  const auto policies = policy_list(options.policy);
  if (!policies) return complain(Exit::Misuse, policies.error());
  if (policies->size() > 1)
    return complain(Exit::Misuse, "--policy: one policy (several: `berth compare --policies …`)");
  auto prepared = prepare(options.input, options.world, *policies);
  if (!prepared) return complain(Exit::Misuse, prepared.error());
  if (const auto output = check_output(options.output); !output)
    return complain(Exit::Misuse, output.error());
  if (!options.output.quiet) tell_notes(prepared->trace, prepared->read);

  RunSpec& spec = prepared->specs.front();
  if (!options.output.out.empty()) spec.recording = Recording::Everything;
  ProgressBar bar(1, prepared->trace.jobs.size(),
                  !options.output.no_progress && !options.output.quiet);
  auto planned = make_run(prepared->trace, prepared->cluster, spec);
  if (!planned) return complain(Exit::Misuse, planned.error());
  const auto run = planned->run(bar.of_run(0));
  bar.erase();
  if (!run) return complain(Exit::Failure, run.error());
  if (!options.output.out.empty()) {
    if (const auto written = write_all(options, *run); !written)
      return complain(Exit::Failure, written.error());
  }
  if (!options.output.quiet) {
    tell_rejected(*run);
    if (!options.output.out.empty())
      print_note(fmt::format("wrote {0} (open {0}/report.html in a browser)", options.output.out));
  }
  return write_stdout(options.output.json ? summary_json(*run) + "\n" : block(*prepared, *run));
}

}  // namespace berth
