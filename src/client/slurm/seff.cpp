// seff: how much of what it had a job has used.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/slurm/facts.h"
#include "client/slurm/help.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"cluster", 'M', Value, "NAME", "of this cluster: there is one"},
    OptionSpec{"debug", 'd', Nothing, "", "nothing more"},
    OptionSpec{"help", 'h', Nothing, "", "this text"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
};

constexpr HelpPage kPage{
    .name = "seff",
    .operands = "JOB_ID",
    .summary = "how much of what it had a job has used",
    .more =
        "Processor time and memory are those of steps that are over; GPUs are counted by the "
        "time they were held.",
    .examples = "seff 12\nseff 20_3"};

/// "1.95 GB" from kibibytes.
std::string size_text(double kib) {
  constexpr std::array kUnits{"KB", "MB", "GB", "TB"};
  std::size_t at = 0;
  for (; kib >= 1'024 && at + 1 < kUnits.size(); ++at) kib /= 1'024;
  return fmt::format("{:.2f} {}", kib, kUnits[at]);
}

double share_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string report(const JobRow& job, const std::vector<StepView>& steps, const NodeTypes& types,
                   const std::string& cluster) {
  const Account account = account_of(job.spec->user);
  const std::string state(slurm_name(job.state));
  std::string text = fmt::format(
      "Job ID: {}\n{}Cluster: {}\nUser/Group: {}/{}\nState: {} (exit code {})\n", job.number,
      job.array != 0 ? fmt::format("Array Job ID: {}\n", job.slurm_id()) : "", harmless(cluster),
      account.user, account.group, state, job.exit_code);
  const Resources has = allocated(job, types);
  if (has.nodes == 0)
    return text + fmt::format("Efficiency not available for jobs in the {} state.\n", state);
  const double wall = elapsed_of(job, unix_now());
  const double processors = std::floor(wall) * has.cpus;  // as sacct's CPUTime
  const double used = cpu_seconds_of(steps);
  std::int64_t memory = 0;
  for (const StepView& step : steps) memory = std::max(memory, step.max_rss_kib);
  text += fmt::format("Cores: {}\n", has.cpus);
  const bool is_counted = !steps.empty();
  if (is_counted)
    text += fmt::format("CPU Utilized: {}\nCPU Efficiency: {:.2f}% of {} core-walltime\n",
                        day_clock(used), share_of(used, processors), day_clock(processors));
  else
    text += "CPU Utilized: not recorded\n";
  text += fmt::format("Job Wall-clock time: {}\n", day_clock(wall));
  if (is_counted) {
    text += fmt::format("Memory Utilized: {}\n", size_text(static_cast<double>(memory)));
    const double asked = static_cast<double>(has.memory_mib) * 1'024;
    text += asked > 0 ? fmt::format("Memory Efficiency: {:.2f}% of {}\n",
                                    share_of(static_cast<double>(memory), asked), size_text(asked))
                      : "Memory Efficiency: not known, no memory was asked for\n";
  }
  if (has.gpus > 0)
    text += fmt::format("GPUs: {}\nGPU Time Held: {} GPU-walltime\n", has.gpus,
                        day_clock(job.gpu_seconds));
  if (job.energy_kwh > 0) text += fmt::format("Energy Charged: {:.3f} kWh\n", job.energy_kwh);
  if (!is_over(job.state))
    text += fmt::format("WARNING: Efficiency statistics may be misleading for {} jobs.\n", state);
  return text;
}

}  // namespace

int run_seff(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPage, kOptions, console)) return *code;
  if (parsed.operands.size() != 1) return console.complain(kMisuse, "of which job? As in seff 12");
  if (const auto name = parse_job_names(parsed.operands.front()); !name)
    return console.complain(kMisuse, name.error());
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  const auto ids = resolve_jobs(*found, parsed.operands, BareNumber::OneJob);
  const auto job = ids && !ids->empty() ? found->job(ids->front()) : Result<JobRow>(fail(""));
  if (!job && found->last_status() == 404) {
    console.put("Job not found.\n");
    return kFailure;
  }
  if (!job) return console.complain(kFailure, ids ? job.error() : ids.error());
  const auto steps = found->steps({job->number});
  if (!steps) return console.complain(kFailure, steps.error());
  const auto nodes = found->nodes();
  if (!nodes) return console.complain(kFailure, nodes.error());
  const auto cluster = found->cluster();
  if (!cluster) return console.complain(kFailure, cluster.error());
  console.put(report(*job, steps->empty() ? std::vector<StepView>{} : steps->front().steps,
                     types_of(*nodes), cluster->name));
  return console.done();
}

}  // namespace berth::client
