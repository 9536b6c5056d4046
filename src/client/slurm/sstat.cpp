// sstat: what the processes of running steps use now, from /proc of this machine.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/split.h"
#include "base/terminal_text.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/slurm/facts.h"
#include "client/slurm/help.h"
#include "client/slurm/processes.h"
#include "client/slurm/sheet.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"allsteps", 'a', Nothing, "", "every step that runs, with the script's own"},
    OptionSpec{"delimiter", 0, Value, "TEXT", "between values of -p and -P (|)"},
    OptionSpec{"format", 'o', Value, "FIELDS", "as in jobid,maxrss%12"},
    OptionSpec{"fields", 0, Value, "FIELDS", "the same"},
    OptionSpec{"help", 'h', Nothing, "", "this text"},
    OptionSpec{"helpformat", 'e', Nothing, "", "the fields of -o"},
    OptionSpec{"jobs", 'j', Value, "IDS", "of these jobs and steps, as in 12,13.0,14.batch"},
    OptionSpec{"noconvert", 0, Nothing, "", "memory in kibibytes"},
    OptionSpec{"noheader", 'n', Nothing, "", "no titles"},
    OptionSpec{"parsable", 'p', Nothing, "", "values between delimiters, one at the end too"},
    OptionSpec{"parsable2", 'P', Nothing, "", "values between delimiters"},
    OptionSpec{"pidformat", 'i', Nothing, "", "the numbers of the processes"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"verbose", 'v', Nothing, "", "nothing more"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
};

constexpr HelpPage kPage{
    .name = "sstat",
    .operands = "[JOB_ID[.STEP]…]",
    .summary = "what the processes of running steps use",
    .more =
        "It reads /proc, so it must run on the machine of the job. A bare number stands for the "
        "steps of srun,\nor for the script if there are none.",
    .examples = "sstat -j 12\nsstat -a -P -n -o jobid,maxrss,avecpu -j 12\nsstat -j 12.batch -i"};

const std::vector<SheetField>& fields() {
  static const std::vector<SheetField> all{
      {"AveCPU", 10},       {"AveCPUFreq", 10},     {"AveDiskRead", 14},
      {"AveDiskWrite", 14}, {"AvePages", 10},       {"AveRSS", 10},
      {"AveVMSize", 10},    {"ConsumedEnergy", 14}, {"ConsumedEnergyRaw", 17},
      {"JobID", 12, true},  {"MaxDiskRead", 12},    {"MaxDiskWrite", 12},
      {"MaxPages", 8},      {"MaxPagesNode", 12},   {"MaxPagesTask", 14},
      {"MaxRSS", 10},       {"MaxRSSNode", 10},     {"MaxRSSTask", 10},
      {"MaxVMSize", 10},    {"MaxVMSizeNode", 14},  {"MaxVMSizeTask", 14},
      {"MinCPU", 10},       {"MinCPUNode", 10},     {"MinCPUTask", 10},
      {"Nodelist", 20},     {"NTasks", 8},          {"Pids", 20},
      {"ReqCPUFreq", 10},   {"ReqCPUFreqMin", 13},  {"ReqCPUFreqMax", 13},
      {"ReqCPUFreqGov", 13}};
  return all;
}

constexpr auto kDefault =
    "jobid,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,maxrssnode,maxrsstask,averss,"
    "maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,ntasks";

/// What one task and all that descend from it use.
struct TaskUse {
  double cpu_seconds = 0;
  std::int64_t rss_kib = 0, virtual_kib = 0, pages = 0;
};

struct StepUse {
  std::string id, node;
  std::vector<TaskUse> tasks;
  std::vector<std::int64_t> pids;
};

TaskUse sum_of(const std::vector<ProcessUse>& family) {
  TaskUse use;
  for (const ProcessUse& one : family) {
    use.cpu_seconds += one.cpu_seconds;
    use.rss_kib += one.rss_kib;
    use.virtual_kib += one.virtual_kib;
    use.pages += one.page_faults;
  }
  return use;
}

/// The keeper of a step has its tasks as children; the script is a task itself.
StepUse use_of(const JobRow& job, const StepView& step, std::span<const ProcessUse> processes,
               std::span<const std::int64_t> keepers) {
  StepUse use{fmt::format("{}.{}", job.slurm_id(), step.id), nodes_of(job), {}, {}};
  if (step.id == kBatchStep) {
    const auto family = family_of(processes, job.pid, keepers);
    if (!family.empty()) use.tasks.push_back(sum_of(family));
    for (const ProcessUse& one : family) use.pids.push_back(one.pid);
    return use;
  }
  for (const ProcessUse& one : family_of(processes, step.pid)) {
    use.pids.push_back(one.pid);
    if (one.parent == step.pid) use.tasks.push_back(sum_of(family_of(processes, one.pid)));
  }
  return use;
}

template <class Get>
std::size_t place_of_most(const StepUse& use, Get get) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < use.tasks.size(); ++i)
    if (get(use.tasks[i]) > get(use.tasks[best])) best = i;
  return best;
}

template <class Get>
double mean_of(const StepUse& use, Get get) {
  double sum = 0;
  for (const TaskUse& task : use.tasks) sum += static_cast<double>(get(task));
  return use.tasks.empty() ? 0 : sum / static_cast<double>(use.tasks.size());
}

std::string value_of(const StepUse& use, std::string_view name, Units units) {
  if (name == "JobID") return use.id;
  if (name == "NTasks") return fmt::to_string(use.tasks.size());
  if (name == "Nodelist") return use.node;
  if (name == "Pids") return fmt::format("{}", fmt::join(use.pids, ","));
  if (use.tasks.empty()) return {};
  const auto rss = [](const TaskUse& t) { return t.rss_kib; };
  const auto size = [](const TaskUse& t) { return t.virtual_kib; };
  const auto pages = [](const TaskUse& t) { return t.pages; };
  const auto idle = [](const TaskUse& t) { return -t.cpu_seconds; };
  const auto kib = [&](double value) { return amount(std::floor(value), 'K', units); };
  const auto most = [&](auto get) {
    return static_cast<double>(get(use.tasks[place_of_most(use, get)]));
  };
  if (name == "MaxRSS") return kib(most(rss));
  if (name == "AveRSS") return kib(mean_of(use, rss));
  if (name == "MaxRSSTask") return fmt::to_string(place_of_most(use, rss));
  if (name == "MaxVMSize") return kib(most(size));
  if (name == "AveVMSize") return kib(mean_of(use, size));
  if (name == "MaxVMSizeTask") return fmt::to_string(place_of_most(use, size));
  if (name == "MaxPages") return fmt::format("{:.0f}", most(pages));
  if (name == "AvePages") return fmt::format("{:.0f}", mean_of(use, pages));
  if (name == "MaxPagesTask") return fmt::to_string(place_of_most(use, pages));
  if (name == "MinCPU") return processor_clock(-most(idle));
  if (name == "MinCPUTask") return fmt::to_string(place_of_most(use, idle));
  if (name == "AveCPU")
    return processor_clock(mean_of(use, [](const TaskUse& t) { return t.cpu_seconds; }));
  if (name.ends_with("Node")) return use.node;
  return {};
}

/// "12.0": the job, and the step or nothing.
struct Asked {
  std::string job, step;
};

Result<std::vector<StepUse>> uses_of(Scheduler& scheduler, const std::vector<Asked>& asked,
                                     const Parsed& parsed, const Console& console) {
  std::vector<StepUse> uses;
  const auto processes = all_processes();
  for (const Asked& one : asked) {
    BERTH_TRY(const auto ids, resolve_jobs(scheduler, {one.job}, BareNumber::WholeArray));
    for (const JobNumber number : ids) {
      const auto job = scheduler.job(number);
      if (!job || is_waiting(job->state) || is_over(job->state)) {
        console.note(fmt::format("error: couldn't get steps for job {}: {}", number,
                                 job ? "it does not run" : "there is no such job"));
        continue;
      }
      BERTH_TRY(auto steps, scheduler.steps({number}));
      std::vector<StepView> running;
      if (!steps.empty()) running = std::move(steps.front().steps);
      std::erase_if(running, [](const StepView& s) { return s.state != StepState::Running; });
      if (std::ranges::find(running, kBatchStep, &StepView::id) == running.end() && job->pid > 0)
        running.insert(running.begin(),
                       StepView{.id = kBatchStep, .name = kBatchStep, .devices = {}});
      std::vector<std::int64_t> keepers;
      for (const StepView& step : running)
        if (step.id != kBatchStep) keepers.push_back(step.pid);
      for (const StepView& step : running) {
        const bool is_batch = step.id == kBatchStep;
        const bool is_meant = !one.step.empty()        ? step.id == one.step
                              : parsed.has("allsteps") ? true
                                                       : !is_batch || keepers.empty();
        if (!is_meant) continue;
        StepUse use = use_of(*job, step, processes, keepers);
        if (use.pids.empty())
          console.note(fmt::format("error: no process of {} is on this machine", use.id));
        else
          uses.push_back(std::move(use));
      }
    }
  }
  return uses;
}

}  // namespace

int run_sstat(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPage, kOptions, console)) return *code;
  if (parsed.has("helpformat")) return console.put(field_names(fields())), console.done();
  std::vector<Asked> asked;
  std::vector<std::string> names = parsed.operands;
  if (parsed.has("jobs")) names.push_back(parsed.value("jobs"));
  for (const std::string& list : names)
    for (const std::string_view one : split(list, ',')) {
      const auto dot = one.find('.');
      asked.push_back({std::string(one.substr(0, dot)),
                       dot == std::string_view::npos ? "" : std::string(one.substr(dot + 1))});
      if (const auto name = parse_job_names(asked.back().job); !name)
        return console.complain(kMisuse, name.error());
    }
  if (asked.empty()) return console.complain(kMisuse, "of which job? As in sstat -j 12");
  const auto columns = sheet_columns(parsed.has("format")      ? parsed.value("format")
                                     : parsed.has("fields")    ? parsed.value("fields")
                                     : parsed.has("pidformat") ? "jobid,nodelist,pids"
                                                               : kDefault,
                                     fields());
  if (!columns) return console.complain(kFailure, columns.error());
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  const auto uses = uses_of(*found, asked, parsed, console);
  if (!uses) return console.complain(kFailure, uses.error());
  std::vector<std::vector<std::string>> rows;
  for (const StepUse& use : *uses) {
    auto& row = rows.emplace_back();
    for (const SheetColumn& column : *columns)
      row.push_back(
          value_of(use, fields()[column.field].name, {.is_kept = parsed.has("noconvert")}));
  }
  console.put(sheet(*columns, rows,
                    {.is_parsable = parsed.has("parsable") || parsed.has("parsable2"),
                     .has_last_delimiter = parsed.has("parsable"),
                     .delimiter = parsed.has("delimiter") ? parsed.value("delimiter") : "|",
                     .has_head = !parsed.has("noheader")}));
  return rows.empty() ? kFailure : console.done();
}

}  // namespace berth::client
