// scancel: ends or signals jobs and steps, chosen by number or by what they are.
#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "base/split.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/selection.h"
#include "client/slurm/facts.h"
#include "client/slurm/help.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"account", 'A', Value, "NAME", "only of this account"},
    OptionSpec{"batch", 'b', Nothing, "", "signal the script's shell alone, not what it started"},
    OptionSpec{"clusters", 'M', Value, "NAMES", "of this cluster: there is one"},
    OptionSpec{"cron", 'c', Nothing, "", "nothing: there are no scrontab jobs"},
    OptionSpec{"ctld", 0, Nothing, "", "nothing: every request goes to the scheduler"},
    OptionSpec{"full", 'f', Nothing, "", "signal every process of the job (the default)"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"hurry", 'H', Nothing, "", "nothing: there is no burst buffer to write back"},
    OptionSpec{"interactive", 'i', Nothing, "", "ask before each job"},
    OptionSpec{"me", 0, Nothing, "", "your own jobs"},
    OptionSpec{"name", 'n', Value, "NAME", "jobs of this name"},
    OptionSpec{"jobname", 0, Value, "NAME", "jobs of this name"},
    OptionSpec{"nodelist", 'w', Value, "NODES", "only jobs on these nodes"},
    OptionSpec{"partition", 'p', Value, "NAME", "jobs of this partition"},
    OptionSpec{"qos", 'q', Value, "NAME", "jobs of this QOS: all have normal"},
    OptionSpec{"quiet", 'Q', Nothing, "", "no word about what could not be done"},
    OptionSpec{"reservation", 'R', Value, "NAME", "jobs of this reservation: there is none"},
    OptionSpec{"sibling", 0, Value, "NAME", "nothing: there is one cluster"},
    OptionSpec{"signal", 's', Value, "SIGNAL", "send this signal instead of ending it"},
    OptionSpec{"state", 't', Value, "STATE", "jobs in this state: PENDING, RUNNING, SUSPENDED"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"user", 'u', Value, "NAME", "jobs of this user"},
    OptionSpec{"verbose", 'v', Nothing, "", "a word about every job"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
    OptionSpec{"wckey", 0, Value, "KEY", "jobs of this key: no job has one"},
};

constexpr HelpPage kPage{
    .name = "scancel",
    .operands = "[JOB_ID[_INDEX][.STEP]…]",
    .summary = "end or signal jobs and steps",
    .more =
        "The number of an array stands for all of it. A job is asked to leave (its warning "
        "signal, then its\ngrace) before it is killed. Without numbers at least one filter is "
        "needed.",
    .examples =
        "scancel 12 13\nscancel 20_[5,10]\nscancel -u $USER -t PENDING\n"
        "scancel -s USR1 -b 12\nscancel 12.0"};

/// "12.0", "12_3.batch": a job and one of its steps.
struct StepName {
  std::string job, step;
};

struct Wanted {
  JobAction action;
  std::vector<std::string> jobs;
  std::vector<StepName> steps;
  std::vector<std::string> nodes;
  std::string accounts;
  bool is_empty = false;  // asked for what nobody has
};

Result<void> take_signal(const Parsed& parsed, JobAction& action) {
  if (!parsed.has("signal")) {
    if (parsed.has("batch")) {
      action.verb = Verb::Signal;
      action.signal = SIGKILL;
    }
  } else {
    BERTH_TRY(action.signal, parse_signal(parsed.value("signal")));
    action.verb = action.signal == SIGKILL && !parsed.has("batch") ? Verb::Cancel : Verb::Signal;
    if (action.verb == Verb::Cancel) action.signal.reset();
  }
  if (parsed.has("batch")) action.shell_only = true;
  return {};
}

Result<Wanted> wanted_of(const Parsed& parsed) {
  Wanted wanted;
  JobAction& action = wanted.action;
  action.verb = Verb::Cancel;
  action.user = parsed.has("me") ? std::string(kMe) : parsed.value("user");
  action.name = parsed.has("name") ? parsed.value("name") : parsed.value("jobname");
  action.queue = parsed.value("partition");
  wanted.accounts = parsed.value("account");
  if (parsed.has("state")) {
    BERTH_TRY(auto states, parse_slurm_states(parsed.value("state")));
    for (const LiveState state : states.states) action.states.emplace_back(to_string(state));
  }
  BERTH_TRY_VOID(take_signal(parsed, action));
  if (parsed.has("nodelist")) {
    BERTH_TRY(wanted.nodes, expanded_hosts(parsed.value("nodelist")));
  }
  wanted.is_empty = !parsed.value("reservation").empty() || !parsed.value("wckey").empty() ||
                    !is_listed(lower(parsed.value("qos")), kQos);
  for (const std::string& operand : parsed.operands) {
    const auto dot = operand.find('.');
    BERTH_TRY_VOID(parse_job_names(operand.substr(0, dot)));
    if (dot == std::string::npos)
      wanted.jobs.push_back(operand);
    else
      wanted.steps.push_back({operand.substr(0, dot), operand.substr(dot + 1)});
  }
  const bool selects = !action.user->empty() || !action.name->empty() || !action.queue->empty() ||
                       !wanted.accounts.empty() || !action.states.empty() ||
                       !wanted.nodes.empty() || parsed.has("qos") || parsed.has("reservation") ||
                       parsed.has("wckey");
  if (parsed.operands.empty() && !selects)
    return fail("No job identification provided (as in scancel 12, or -u, -n, -p, -t, -w)");
  return wanted;
}

/// What the scheduler does not choose by itself: accounts, which are groups or users, nodes, and a
/// question before each.
Result<std::vector<JobNumber>> picked(Scheduler& scheduler, const Wanted& wanted,
                                      const Parsed& parsed) {
  const JobAction& action = wanted.action;
  JobQuery query{
      .user = *action.user, .queue = *action.queue, .name = *action.name, .ids = action.ids};
  for (const std::string& state : action.states)
    if (const auto known = live_state_from(state)) query.states.push_back(*known);
  BERTH_TRY(const JobRows rows, scheduler.jobs(query));
  std::vector<JobNumber> numbers;
  for (const JobRow& job : rows.jobs) {
    const bool is_there =
        wanted.nodes.empty() || std::ranges::any_of(job.where, [&](const HeldDevices& held) {
          return std::ranges::find(wanted.nodes, held.node) != wanted.nodes.end();
        });
    if (!is_there || !is_listed(wanted.accounts, account_name(job))) continue;
    if (parsed.has("interactive")) {
      std::cerr << fmt::format("Cancel job_id={} name={} partition={} [y/n]? ", job.slurm_id(),
                               harmless(job.spec->name), partition_of(job));
      std::string answer;
      if (!std::getline(std::cin, answer) || (answer != "y" && answer != "Y")) continue;
    }
    numbers.push_back(job.number);
  }
  return numbers;
}

/// Only a process that says itself that it belongs to the job: numbers of processes come again.
bool belongs_to(std::int64_t pid, JobNumber job) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string wanted = fmt::format("BERTH_JOB_ID={}", job);
  const auto words = split(text, '\0');
  return std::ranges::find(words, wanted) != words.end();
}

Result<void> signal_step(Scheduler& scheduler, const StepName& name, const JobAction& action) {
  BERTH_TRY(const auto numbers, resolve_jobs(scheduler, {name.job}, BareNumber::OneJob));
  const std::string shown = fmt::format("{}.{}", name.job, name.step);
  BERTH_TRY(const auto all, scheduler.steps(numbers));
  const StepView* step = nullptr;
  for (const JobSteps& steps : all)
    for (const StepView& one : steps.steps)
      if (one.id == name.step) step = &one;
  const auto refuse = [&](std::string_view why) {
    return fail(fmt::format("Kill job error on job step id {}: {}", shown, why));
  };
  if (step == nullptr) return refuse("Invalid job id specified");
  if (step->state != StepState::Running) return refuse("Job/step already completing or completed");
  if (name.step == kBatchStep) {
    JobAction batch{.verb = Verb::Signal,
                    .ids = numbers,
                    .signal = action.signal.value_or(SIGTERM),
                    .shell_only = true};
    BERTH_TRY(const auto results, scheduler.act(batch));
    if (!results.empty() && !results.front().is_done) return refuse(results.front().text);
    return {};
  }
  if (step->pid <= 0 || !belongs_to(step->pid, numbers.front()))
    return refuse("its process is not yours, or not on this machine");
  // The one that keeps the step passes it on to the tasks, and kills who stays.
  const int number = action.signal.value_or(SIGTERM);
  if (::kill(static_cast<pid_t>(step->pid), number == SIGKILL ? SIGTERM : number) != 0)
    return refuse("the signal could not be sent");
  return {};
}

int tell(const std::vector<VerbResult>& results, const Parsed& parsed, const Console& console) {
  int code = kSuccess;
  for (const VerbResult& result : results) {
    // Who is gone already has what was wanted; Slurm says so only when asked to.
    const bool is_over = result.text.find("is over") != std::string::npos;
    if (!result.is_done && !is_over) code = kFailure;
    const bool is_told = result.is_done || is_over ? parsed.has("verbose") : !parsed.has("quiet");
    if (is_told)
      console.note(fmt::format("{}{}", result.is_done ? "" : "error: ", result_text(result)));
  }
  return parsed.has("quiet") ? kSuccess : code;
}

}  // namespace

int run_scancel(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPage, kOptions, console)) return *code;
  auto wanted = wanted_of(parsed);
  if (!wanted) return console.complain(kMisuse, wanted.error());
  if (wanted->is_empty) return kSuccess;
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  Scheduler& scheduler = *found;
  int code = kSuccess;
  for (const StepName& step : wanted->steps)
    if (const auto done = signal_step(scheduler, step, wanted->action); !done)
      code = console.complain(kFailure, done.error());
  if (!parsed.operands.empty() && wanted->jobs.empty()) return code;
  auto ids = resolve_jobs(scheduler, wanted->jobs, BareNumber::WholeArray);
  if (!ids) return console.complain(kFailure, ids.error());
  wanted->action.ids = *std::move(ids);
  if (parsed.has("interactive") || !wanted->nodes.empty() || !wanted->accounts.empty()) {
    auto numbers = picked(scheduler, *wanted, parsed);
    if (!numbers) return console.complain(kFailure, numbers.error());
    if (numbers->empty()) return code;
    wanted->action = {.verb = wanted->action.verb,
                      .ids = *std::move(numbers),
                      .signal = wanted->action.signal,
                      .shell_only = wanted->action.shell_only};
  }
  const auto results = scheduler.act(wanted->action);
  if (!results) return console.complain(kFailure, results.error());
  return std::max(code, tell(*results, parsed, console));
}

}  // namespace berth::client
