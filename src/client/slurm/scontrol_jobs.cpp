// scontrol show job and show step.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "client/array_fold.h"
#include "client/job_ids.h"
#include "client/slurm/facts.h"
#include "client/slurm/json.h"
#include "client/slurm/scontrol.h"

namespace berth::client::slurm {

namespace {

/// So long Slurm, as it is delivered, remembers a job that is over.
constexpr std::int64_t kRemembered = 300;

struct Shown {
  const JobRow& job;
  const std::string& indices;
  const NodeTypes& types;
  std::int64_t now = 0;
};

std::string or_null(const std::string& text) { return text.empty() ? "(null)" : text; }

std::string limit_text(const JobRow& job) {
  const std::int64_t limit = job.spec->time_limit;
  return limit > 0 ? day_clock(static_cast<double>(limit)) : "UNLIMITED";
}

std::string first_line(const Shown& s) {
  std::string text = fmt::format("JobId={} ", s.indices.empty() ? s.job.number : s.job.array);
  if (s.job.array != 0) {
    text += fmt::format("ArrayJobId={} ArrayTaskId={} ", s.job.array,
                        s.indices.empty() ? fmt::to_string(s.job.array_index) : s.indices);
    if (s.job.array_at_once > 0) text += fmt::format("ArrayTaskThrottle={} ", s.job.array_at_once);
  }
  return text + fmt::format("JobName={}", harmless(name_of(s.job, s.indices)));
}

void add_state(const Shown& s, const ControlStyle& style, std::vector<std::string>& lines) {
  const JobSpec& spec = *s.job.spec;
  const AccountedExit exit = shown_exit(s.job);
  const Account account = account_of(spec.user);
  lines.push_back(fmt::format("UserId={}({}) GroupId={}({}) MCS_label=N/A", account.user,
                              account.uid, account.group, account.gid));
  lines.push_back(fmt::format("Priority={} Nice={} Account={} QOS={}", spec.priority,
                              -std::min(0, spec.priority), account_name(s.job), kQos));
  lines.push_back(fmt::format("JobState={} Reason={} Dependency={}", slurm_name(s.job.state),
                              slurm_reason(s.job),
                              or_null(to_text(spec.dependencies, spec.any_dependency))));
  lines.push_back(fmt::format("Requeue={} Restarts={} BatchFlag=1 Reboot=0 ExitCode={}",
                              spec.requeue ? 1 : 0, std::max(0, s.job.attempts - 1),
                              exit_pair(exit.code, exit.signal)));
  if (style.has_details)
    lines.push_back(fmt::format("DerivedExitCode={}", exit_pair(exit.code, 0)));
}

void add_times(const Shown& s, std::vector<std::string>& lines) {
  const JobRow& job = s.job;
  lines.push_back(fmt::format("RunTime={} TimeLimit={} TimeMin=N/A",
                              day_clock(elapsed_of(job, s.now)), limit_text(job)));
  const std::string eligible = moment_or(eligible_of(job), "Unknown");
  lines.push_back(
      fmt::format("SubmitTime={} EligibleTime={}", moment_or(job.submitted, "Unknown"), eligible));
  lines.push_back(fmt::format("AccrueTime={}", eligible));
  lines.push_back(fmt::format("StartTime={} EndTime={} Deadline={}",
                              moment_or(start_of(job), "Unknown"),
                              moment_or(end_of(job, s.now), "Unknown"),
                              moment_or(job.spec->deadline.value_or(0) * 1'000'000, "N/A")));
  const double ran = job.suspended_seconds > 0 ? elapsed_of(job, s.now) : 0;
  lines.push_back(
      fmt::format("SuspendTime={} SecsPreSuspend={:.0f} LastSchedEval=N/A Scheduler=Berth",
                  moment_or(job.suspended, "None"), std::floor(ran)));
}

/// With -d: which devices and cores on which node.
void add_holdings(const Shown& s, const Resources& has, std::vector<std::string>& lines) {
  if (has.gpus > 0)
    lines.push_back(fmt::format("JOB_GRES=gpu{}{}:{}", has.gpu_type.empty() ? "" : ":",
                                has.gpu_type, has.gpus));
  for (const HeldDevices& held : s.job.where) {
    const auto type = s.types.find(held.node);
    const std::string kind =
        type == s.types.end() || type->second.empty() ? "" : ":" + type->second;
    lines.push_back(fmt::format(
        "  Nodes={} CPU_IDs={} Mem={} GRES={}", held.node,
        held.cores.empty() ? "N/A" : index_ranges(held.cores), has.memory_mib / has.nodes,
        held.devices.empty() ? std::string()
                             : fmt::format("gpu{}:{}(IDX:{})", kind, held.devices.size(),
                                           index_ranges(held.devices))));
  }
}

void add_resources(const Shown& s, const ControlStyle& style, std::vector<std::string>& lines) {
  const JobSpec& spec = *s.job.spec;
  const Resources asks = requested(s.job), has = allocated(s.job, s.types);
  const bool runs = has.nodes > 0;
  const std::int32_t tasks = tasks_of(s.job);
  lines.push_back(fmt::format("Partition={} AllocNode:Sid=N/A:0", partition_of(s.job)));
  lines.push_back(
      fmt::format("ReqNodeList={} ExcNodeList=(null)", or_null(folded_hosts(spec.nodes))));
  lines.push_back(fmt::format("NodeList={}", runs ? nodes_of(s.job) : ""));
  if (runs) lines.push_back(fmt::format("BatchHost={}", s.job.where.front().node));
  lines.push_back(fmt::format("NumNodes={} NumCPUs={} NumTasks={} CPUs/Task={} ReqB:S:C:T=0:0:*:*",
                              runs ? has.nodes : 1, runs ? has.cpus : asks.cpus, tasks,
                              std::max(1, asks.cpus / tasks)));
  lines.push_back(fmt::format("ReqTRES={}", tres(asks, TresOrder::Table)));
  lines.push_back(fmt::format("AllocTRES={}", or_null(tres(has, TresOrder::Table))));
  lines.push_back(fmt::format("Socks/Node=* NtasksPerN:B:S:C={}:0:*:* CoreSpec=*", tasks));
  if (style.has_details && runs) add_holdings(s, has, lines);
  lines.push_back(fmt::format("MinCPUsNode={} MinMemoryNode={} MinTmpDiskNode=0", asks.cpus,
                              amount(static_cast<double>(spec.memory_mib), 'M')));
  lines.emplace_back("Features=(null) DelayBoot=00:00:00");
  lines.push_back(fmt::format("OverSubscribe={} Contiguous=0 Licenses=(null) Network=(null)",
                              spec.exclusive ? "NO" : "OK"));
}

std::string block(const Shown& s, const ControlStyle& style) {
  const JobSpec& spec = *s.job.spec;
  std::vector<std::string> lines{first_line(s)};
  add_state(s, style, lines);
  add_times(s, lines);
  add_resources(s, style, lines);
  lines.push_back(fmt::format("Command={}", or_null(command_of(s.job))));
  lines.push_back(fmt::format("WorkDir={}", spec.workdir));
  if (!spec.comment.empty()) lines.push_back(fmt::format("Comment={} ", spec.comment));
  lines.push_back(fmt::format("StdErr={}", s.job.error.empty() ? s.job.output : s.job.error));
  lines.push_back(fmt::format("StdIn={}", spec.input.empty() ? "/dev/null" : spec.input));
  lines.push_back(fmt::format("StdOut={}", s.job.output));
  if (spec.gpus > 0)
    lines.push_back(fmt::format("TresPerNode={}", gres_request(spec.gpus, spec.gpu_type)));
  return record(lines, style);
}

Result<std::vector<JobRow>> jobs_named(Scheduler& scheduler, const std::string& id) {
  JobQuery query;
  query.any_state = true;
  query.rows = Rows::WithJson;
  if (id.empty()) {
    query.ended_since = unix_now() - kRemembered;
  } else {
    BERTH_TRY(query.ids, resolve_jobs(scheduler, {id}, BareNumber::WholeArray));
  }
  BERTH_TRY(JobRows rows, scheduler.jobs(query));
  // Only a job on its own is told with its environment, which says where its script lies.
  if (query.ids.size() == 1 && rows.jobs.size() == 1) {
    BERTH_TRY(rows.jobs.front(), scheduler.job(query.ids.front()));
  }
  return std::move(rows.jobs);
}

/// Names may hold line breaks, with which somebody could shape another job's line.
std::vector<JobRow> harmless_rows(std::vector<JobRow> jobs) {
  for (JobRow& job : jobs) {
    auto spec = std::make_shared<JobSpec>(*job.spec);
    for (std::string* text : {&spec->name, &spec->comment, &spec->workdir, &spec->input})
      *text = harmless(*text);
    for (std::string& word : spec->command) word = harmless(word);
    job.spec = std::move(spec);
    job.output = harmless(job.output);
    job.error = harmless(job.error);
  }
  return jobs;
}

}  // namespace

std::string record(const std::vector<std::string>& lines, const ControlStyle& style) {
  if (style.is_oneliner) return fmt::format("{}\n", fmt::join(lines, " "));
  return fmt::format("{}\n\n", fmt::join(lines, "\n   "));
}

int show_jobs(const Control& control, const std::string& id) {
  auto jobs = jobs_named(control.scheduler, id);
  const bool is_unknown =
      !id.empty() && (jobs ? jobs->empty() : control.scheduler.last_status() == 404);
  if (is_unknown)
    return control.console.complain(kFailure, "slurm_load_jobs error: Invalid job id specified");
  if (!jobs) return control.console.complain(kFailure, jobs.error());
  const auto nodes = control.scheduler.nodes();
  if (!nodes) return control.console.complain(kFailure, nodes.error());
  const NodeTypes types = types_of(*nodes);
  const std::int64_t now = unix_now();
  if (control.style.is_json) {
    const auto cluster = control.scheduler.cluster();
    if (!cluster) return control.console.complain(kFailure, cluster.error());
    Json rows = Json::array();
    for (const JobRow& job : *jobs) rows.push_back(job_json(job, "", now, types, cluster->name));
    control.console.put(json_answer("jobs", std::move(rows), "scontrol", *cluster));
    return control.console.done();
  }
  const auto rows = harmless_rows(*std::move(jobs));
  std::string text;
  for (const QueueLine& line : rows.size() == 1 ? one_line_each(rows) : folded_arrays(rows))
    text += block({*line.job, line.indices, types, now}, control.style);
  if (rows.empty()) text = "No jobs in the system\n";
  control.console.put(text);
  return control.console.done();
}

int show_steps(const Control& control, const std::string& id) {
  const auto dot = id.find('.');
  const std::string job_name = id.substr(0, dot);
  const std::string wanted = dot == std::string::npos ? "" : id.substr(dot + 1);
  auto jobs = jobs_named(control.scheduler, job_name);
  if (!jobs) return control.console.complain(kFailure, jobs.error());
  std::vector<JobNumber> numbers;
  for (const JobRow& job : *jobs)
    if (!is_waiting(job.state) && !is_over(job.state)) numbers.push_back(job.number);
  const auto all = control.scheduler.steps(numbers);
  if (!all) return control.console.complain(kFailure, all.error());
  std::string text;
  for (const JobRow& job : *jobs) {
    const auto steps = std::ranges::find(*all, job.number, &JobSteps::job);
    if (steps == all->end()) continue;
    for (const StepView& step : steps->steps) {
      if (step.state != StepState::Running || (!wanted.empty() && step.id != wanted)) continue;
      const Resources has{.cpus = step.cpus,
                          .gpus = static_cast<std::int32_t>(step.devices.size())};
      const std::string its_tres = tres(has, TresOrder::Letters);
      std::vector<std::string> lines{
          fmt::format("StepId={}.{} UserId={} StartTime={} TimeLimit=UNLIMITED", job.slurm_id(),
                      step.id, account_of(job.spec->user).uid, moment_or(step.begun, "Unknown")),
          fmt::format("State={} Partition={} NodeList={}", state_word(step.state),
                      partition_of(job), nodes_of(job)),
          fmt::format("Nodes=1 CPUs={} Tasks={} Name={} Network=(null)", step.cpus, step.tasks,
                      harmless(step.name)),
          fmt::format("TRES={}", its_tres.empty() ? "(null)" : its_tres),
          "ResvPorts=(null)",
          "CPUFreqReq=Default",
          fmt::format("SrunHost:Pid={}:{}", step.pid > 0 ? nodes_of(job) : "(null)", step.pid)};
      text += record(lines, control.style);
    }
  }
  if (text.empty() && !id.empty())
    return control.console.complain(kFailure, fmt::format("Job step {} not found", harmless(id)));
  control.console.put(text.empty() ? "No job steps in the system\n" : text);
  return control.console.done();
}

}  // namespace berth::client::slurm
