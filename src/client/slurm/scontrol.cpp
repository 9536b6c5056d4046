// scontrol: shows and changes jobs and nodes, one command from its words or many from its input.
#include "client/slurm/scontrol.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "base/terminal_text.h"
#include "client/job_ids.h"
#include "client/slurm/facts.h"
#include "client/slurm/format.h"
#include "client/slurm/help.h"
#include "client/slurm/processes.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"all", 'a', Nothing, "", "nothing: no partition is hidden"},
    OptionSpec{"clusters", 'M', Value, "NAMES", "of this cluster: there is one"},
    OptionSpec{"details", 'd', Nothing, "", "with devices and cores by node"},
    OptionSpec{"federation", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"future", 'F', Nothing, "", "nothing: no node is of the future"},
    OptionSpec{"help", 'h', Nothing, "", "this text"},
    OptionSpec{"hide", 0, Nothing, "", "nothing: no partition is hidden"},
    OptionSpec{"json", 0, Maybe, "VERSION", "Slurm's JSON, of show job and show node"},
    OptionSpec{"local", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"oneliner", 'o', Nothing, "", "a line for each record"},
    OptionSpec{"quiet", 'Q', Nothing, "", "no word about what could not be done"},
    OptionSpec{"sibling", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"uid", 'u', Value, "USER", "refused: you act as yourself"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"verbose", 'v', Nothing, "", "nothing more"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
    OptionSpec{"yaml", 0, Maybe, "VERSION", "refused: --json has the same"},
};

constexpr HelpPage kPage{
    .name = "scontrol",
    .operands = "[COMMAND…]",
    .summary = "show and change jobs and nodes",
    .more = R"(Commands (without one they are read from standard input, a line each):
  show job [ID]              jobs: all, one, an array (12, 12_3)
  show node [NODES]          nodes, as in n[1-3]
  show partition [NAME]      the queues
  show step [ID]             steps that run
  show config                the scheduler's settings
  show hostnames [LIST]      a line for each of n[1-3] (without a list: SLURM_JOB_NODELIST)
  show hostlist NAMES        n1,n2,n3 as n[1-3]; hostlistsorted sorts first
  hold, uhold, release ID…   keep waiting jobs from starting, let them go
  requeue, requeuehold ID…   stop and run again later, or held
  suspend, resume ID…        stop processes for a while (operators)
  update jobid=ID KEY=VALUE… TimeLimit, Priority, Nice, JobName, Partition, Account, NumCPUs,
                             CPUsPerTask, NumTasks, MinMemoryNode, Gres, TresPerNode, StartTime,
                             Deadline, Dependency, ReqNodeList, Requeue, Comment, WorkDir, StdOut
  update nodename=N state=drain|down|resume reason=TEXT
  write batch_script ID [FILE]   its script; - is standard output
  listpids [ID[.STEP]]       processes of your jobs on this machine
  pidinfo PID                which job a process belongs to
  wait_job ID                until it has its nodes
  ping                       whether the scheduler answers
  reconfigure                refused: send the scheduler SIGHUP (systemctl reload berth)
  version, help, exit, quit)",
    .examples =
        "scontrol show job 12\nscontrol -o show node\n"
        "scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1\n"
        "scontrol update jobid=12 timelimit=4:00:00\nscontrol hold 12 13\n"
        "scontrol update nodename=n3 state=drain reason='new fan'"};

std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

/// A list, or a file of names if it begins with a slash.
Result<std::string> host_text(const std::string& list) {
  if (!list.starts_with('/')) return list;
  std::ifstream file(list);
  if (!file) return fail(fmt::format("{}: cannot be read", list));
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

/// What needs no scheduler.
std::optional<int> show_hosts(Console& console, std::span<const std::string> words) {
  const std::string what = lower(words[0]);
  if (!what.starts_with("hostname") && !what.starts_with("hostlist")) return std::nullopt;
  std::string list = words.size() > 1 ? words[1] : variable("SLURM_JOB_NODELIST");
  if (words.size() < 2 && what.starts_with("hostlist"))
    return console.complain(kFailure, "invalid number of arguments");
  const auto text = host_text(list);
  if (!text) return console.complain(kFailure, text.error());
  auto names = expanded_hosts(*text);
  if (!names) return console.complain(kFailure, names.error());
  if (what.starts_with("hostname")) {
    for (const std::string& name : *names) console.put(harmless(name) + "\n");
    return console.done();
  }
  if (what == "hostlistsorted") return console.put(folded_names(*names) + "\n"), console.done();
  console.put(harmless(folded_hosts(*names)) + "\n");
  return console.done();
}

int write_script(const Control& control, std::span<const std::string> words) {
  if (words.size() < 2 || lower(words[0]) != "batch_script")
    return control.console.complain(kFailure, "write: as in `scontrol write batch_script 12`");
  const auto ids = resolve_jobs(control.scheduler, {words[1]}, BareNumber::OneJob);
  if (!ids || ids->empty()) return control.console.complain(kFailure, "Invalid job id specified");
  const auto job = control.scheduler.job(ids->front());
  if (!job)
    return control.console.complain(kFailure, control.scheduler.last_status() == 404
                                                  ? Error("Invalid job id specified")
                                                  : job.error());
  if (job->spec->script.empty())
    return control.console.complain(
        kFailure, fmt::format("job {} has no script, or it is not yours to read", words[1]));
  if (words.size() > 2 && words[2] == "-") {
    control.console.put(job->spec->script);
    return control.console.done();
  }
  const std::string path = words.size() > 2 ? words[2] : fmt::format("slurm-{}.sh", ids->front());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << job->spec->script;
  file.close();
  if (!file) return control.console.complain(kFailure, fmt::format("{}: cannot be written", path));
  ::chmod(path.c_str(), 0700);
  control.console.put(
      fmt::format("batch script for job {} written to {}\n", ids->front(), harmless(path)));
  return control.console.done();
}

/// The processes of each running step; the script's are those that belong to no other.
int list_pids(const Control& control, const std::string& id) {
  const std::string job_name = id.substr(0, id.find('.'));
  const std::string wanted = id.find('.') == std::string::npos ? "" : id.substr(id.find('.') + 1);
  JobQuery query;
  if (job_name.empty()) {
    query.states = {LiveState::Running, LiveState::Suspended, LiveState::Stopping};
    query.user = kMe;
  } else {
    const auto ids = resolve_jobs(control.scheduler, {job_name}, BareNumber::WholeArray);
    if (!ids) return control.console.complain(kFailure, ids.error());
    query.ids = *ids;
  }
  const auto jobs = control.scheduler.jobs(query);
  if (!jobs) return control.console.complain(kFailure, jobs.error());
  std::vector<JobNumber> numbers;
  for (const JobRow& job : jobs->jobs) numbers.push_back(job.number);
  const auto all_steps = control.scheduler.steps(numbers);
  if (!all_steps) return control.console.complain(kFailure, all_steps.error());
  const auto processes = all_processes();
  std::string text = "PID      JOBID    STEPID   LOCALID GLOBALID\n";
  bool is_any = false;
  const auto add = [&](const JobRow& job, const std::string& step, std::int64_t pid,
                       std::span<const std::int64_t> without) {
    if (!wanted.empty() && step != wanted) return;
    for (const ProcessUse& one : family_of(processes, pid, without)) {
      const bool is_first = one.pid == pid;
      text += fmt::format("{:<8} {:<8} {:<8} {:<7} {:<8}\n", one.pid, job.number, step,
                          is_first ? "0" : "-", is_first ? "0" : "-");
      is_any = true;
    }
  };
  for (const JobRow& job : jobs->jobs) {
    const auto steps = std::ranges::find(*all_steps, job.number, &JobSteps::job);
    std::vector<std::int64_t> keepers;
    if (steps != all_steps->end())
      for (const StepView& step : steps->steps)
        if (step.state == StepState::Running && step.id != kBatchStep && step.pid > 0)
          keepers.push_back(step.pid);
    if (job.pid > 0) add(job, kBatchStep, job.pid, keepers);
    if (steps == all_steps->end()) continue;
    for (const StepView& step : steps->steps)
      if (step.state == StepState::Running && step.id != kBatchStep)
        add(job, step.id, step.pid, {});
  }
  if (!is_any)
    return control.console.complain(kFailure,
                                    fmt::format("no process of {} runs on this machine",
                                                id.empty() ? "your jobs" : "job " + harmless(id)));
  control.console.put(text);
  return control.console.done();
}

int pid_info(const Control& control, const std::string& pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const std::string_view word : split(text, '\0')) {
    constexpr std::string_view kJob = "BERTH_JOB_ID=";
    if (!word.starts_with(kJob)) continue;
    const std::string id(word.substr(kJob.size()));
    const auto ids = resolve_jobs(control.scheduler, {id}, BareNumber::OneJob);
    const auto job = ids ? control.scheduler.job(ids->front()) : Result<JobRow>(fail("unknown"));
    if (!job) break;
    const std::int64_t end = end_of(*job, unix_now());
    control.console.put(fmt::format("Slurm JobId={} ends at {}", id,
                                    end > 0 ? asctime_text(end / 1'000'000) : "Unknown\n"));
    return control.console.done();
  }
  return control.console.complain(kFailure,
                                  fmt::format("process {} belongs to no job", harmless(pid)));
}

int wait_for_nodes(const Control& control, const std::string& name) {
  const auto ids = resolve_jobs(control.scheduler, {name}, BareNumber::OneJob);
  if (!ids || ids->empty()) return control.console.complain(kFailure, "Invalid job id specified");
  while (true) {
    const auto job = control.scheduler.job(ids->front());
    if (!job) return control.console.complain(kFailure, job.error());
    if (is_over(job->state))
      return control.console.complain(kFailure, fmt::format("job {} is over", ids->front()));
    if (!is_waiting(job->state) && job->state != LiveState::Starting) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  control.console.note(fmt::format("Nodes are ready for job {}", ids->front()));
  return kSuccess;
}

int ping(const Control& control) {
  const auto health = control.scheduler.cluster();
  const std::string where = control.scheduler.endpoint().text();
  if (!health) {
    control.console.put(fmt::format("Slurmctld(primary) at {} is DOWN\n", where));
    return kFailure;
  }
  control.console.put(fmt::format("Slurmctld(primary) at {} is UP\n", where));
  if (!health->trouble.empty()) control.console.note(health->trouble);
  return control.console.done();
}

int run_command(Control& control, std::span<const std::string> words);

}  // namespace

namespace slurm {

int show(const Control& control, std::span<const std::string> words) {
  if (words.empty())
    return control.console.complain(kFailure, "too few arguments for keyword:show");
  // "job 12" and "job=12"
  const auto equals = words[0].find('=');
  const std::string what = lower(words[0].substr(0, equals));
  const std::string which = equals != std::string::npos ? words[0].substr(equals + 1)
                            : words.size() > 1          ? words[1]
                                                        : "";
  const auto is = [&](std::string_view name, std::size_t least) {
    return what.size() >= least && name.starts_with(what);
  };
  if (const auto code = show_hosts(control.console, words)) return *code;
  if (is("jobs", 1) || what == "jobid") return show_jobs(control, which);
  if (is("nodes", 1)) return show_nodes(control, which);
  if (is("partitions", 1)) return show_partitions(control, which);
  if (is("steps", 2)) return show_steps(control, which);
  if (is("config", 2)) return show_config(control);
  if (is("reservations", 1))
    return control.console.put("No reservations in the system\n"), control.console.done();
  if (is("licenses", 2))
    return control.console.put("No licenses configured in Slurm.\n"), control.console.done();
  return control.console.complain(kFailure,
                                  fmt::format("invalid entity:{} for keyword:show", what));
}

}  // namespace slurm

namespace {

/// One of the commands whose beginning this is; "" if none or several.
std::string command_named(const std::string& word) {
  constexpr std::array kCommands{
      "all",      "batch",       "completing", "details",  "errnumstr", "exit",        "help",
      "hide",     "hold",        "holdu",      "listjobs", "listpids",  "liststeps",   "notify",
      "oneliner", "pidinfo",     "ping",       "quiet",    "quit",      "reconfigure", "release",
      "requeue",  "requeuehold", "resume",     "show",     "suspend",   "top",         "uhold",
      "update",   "verbose",     "version",    "wait_job", "write"};
  const std::string small = lower(word);
  std::string found;
  for (const std::string_view command : kCommands) {
    if (command == small) return small;
    if (small.size() >= 2 && command.starts_with(small)) {
      if (!found.empty()) return {};
      found = command;
    }
  }
  return found;
}

int run_command(Control& control, std::span<const std::string> words) {
  const std::string command = command_named(words.front());
  const auto rest = words.subspan(1);
  const std::string first = rest.empty() ? "" : rest.front();
  if (command == "show") return show(control, rest);
  if (command == "update") return update(control, rest);
  if (command == "hold" || command == "holdu" || command == "uhold" || command == "release" ||
      command == "requeue" || command == "requeuehold" || command == "suspend" ||
      command == "resume")
    return act(control, command, rest);
  if (command == "write") return write_script(control, rest);
  if (command == "listpids") return list_pids(control, first);
  if (command == "listjobs" || command == "liststeps") return show_steps(control, "");
  if (command == "pidinfo") return pid_info(control, first);
  if (command == "wait_job") return wait_for_nodes(control, first);
  if (command == "ping") return ping(control);
  if (command == "version")
    return control.console.put("berth " BERTH_VERSION "\n"), control.console.done();
  if (command == "help")
    return control.console.put(help_text(kPage, kOptions)), control.console.done();
  if (command == "details") return control.style.has_details = true, kSuccess;
  if (command == "oneliner") return control.style.is_oneliner = true, kSuccess;
  if (command == "quiet") return control.style.is_quiet = true, kSuccess;
  if (command == "all" || command == "hide" || command == "verbose") return kSuccess;
  if (command == "reconfigure")
    return control.console.complain(
        kFailure,
        "reconfigure: the scheduler reads its configuration again when it gets SIGHUP "
        "(systemctl reload berth); this request changes nothing");
  return control.console.complain(kFailure,
                                  fmt::format("invalid keyword: {}", harmless(words.front())));
}

/// Words of a line, in which quotes keep blanks together.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool is_word = false;
  for (const char c : line) {
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      is_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (is_word) words.push_back(std::exchange(word, {}));
      is_word = false;
    } else {
      word += c;
      is_word = true;
    }
  }
  if (is_word) words.push_back(word);
  return words;
}

int run_lines(Control& control) {
  int code = kSuccess;
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  std::string line;
  while (true) {
    if (is_terminal) control.console.put("scontrol: ");
    if (!std::getline(std::cin, line)) break;
    const auto words = words_of(line);
    if (words.empty() || words.front().starts_with('#')) continue;
    const std::string command = command_named(words.front());
    if (command == "exit" || command == "quit") break;
    code = std::max(code, run_command(control, words));
  }
  return code;
}

}  // namespace

int run_scontrol(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPage, kOptions, console)) return *code;
  if (parsed.has("yaml")) return console.complain(kMisuse, "--yaml: there is --json");
  if (parsed.has("uid"))
    return console.complain(kFailure, "--uid: nobody acts as somebody else here");
  const std::vector<std::string>& operands = parsed.operands;
  if (operands.size() > 1 && command_named(operands[0]) == "show")
    if (const auto code = show_hosts(console, std::span(operands).subspan(1))) return *code;
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  Control control{*found,
                  console,
                  {.is_oneliner = parsed.has("oneliner"),
                   .has_details = parsed.has("details"),
                   .is_quiet = parsed.has("quiet"),
                   .is_json = parsed.has("json")}};
  return operands.empty() ? run_lines(control) : run_command(control, operands);
}

}  // namespace berth::client
