// sacct: jobs and their steps as they are on record.
#include <algorithm>
#include <array>
#include <ctime>
#include <map>

#include <unistd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "client/array_fold.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/selection.h"
#include "client/slurm/help.h"
#include "client/slurm/json.h"
#include "client/slurm/sacct_fields.h"
#include "client/slurm/sacct_json.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"accounts", 'A', Value, "NAMES", "only of these accounts"},
    OptionSpec{"allclusters", 'L', Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"allocations", 'X', Nothing, "", "jobs alone, without their steps"},
    OptionSpec{"allusers", 'a', Nothing, "", "everybody's (root's default); with -j as well"},
    OptionSpec{"array", 0, Nothing, "", "a line for each job of an array, also while it waits"},
    OptionSpec{"batch-script", 'B', Nothing, "", "the scripts of the jobs of -j"},
    OptionSpec{"brief", 'b', Nothing, "", "the fields jobid, state and exitcode"},
    OptionSpec{"clusters", 'M', Value, "NAMES", "of this cluster: there is one"},
    OptionSpec{"completion", 'c', Nothing, "", "nothing: there is one record"},
    OptionSpec{"delimiter", 0, Value, "TEXT", "between values of -p and -P (|)"},
    OptionSpec{"duplicates", 'D', Nothing, "", "earlier runs of a job as well"},
    OptionSpec{"endtime", 'E', Value, "TIME", "only what was there before"},
    OptionSpec{"env-vars", 0, Nothing, "", "the environment of the jobs of -j"},
    OptionSpec{"federation", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"format", 'o', Value, "FIELDS", "as in jobid,jobname%20,state%-10"},
    OptionSpec{"gid", 'g', Value, "GROUPS", "only of users of these groups"},
    OptionSpec{"group", 0, Value, "GROUPS", "the same"},
    OptionSpec{"help", 'h', Nothing, "", "this text"},
    OptionSpec{"helpformat", 'e', Nothing, "", "the fields of -o"},
    OptionSpec{"helpstate", 0, Nothing, "", "the states of -s"},
    OptionSpec{"jobs", 'j', Value, "IDS", "only these jobs and steps, as in 12,13.0,20_3"},
    OptionSpec{"json", 0, Maybe, "VERSION", "Slurm's JSON (v0.0.42)"},
    OptionSpec{"local", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"long", 'l', Nothing, "", "many fields"},
    OptionSpec{"name", 0, Value, "NAMES", "only of these names"},
    OptionSpec{"ncpus", 'I', Value, "N[-M]", "only with so many cores"},
    OptionSpec{"nnodes", 'i', Value, "N[-M]", "only on so many nodes"},
    OptionSpec{"noconvert", 0, Nothing, "", "memory as it was given"},
    OptionSpec{"nodelist", 'N', Value, "NODES", "only on these nodes"},
    OptionSpec{"noheader", 'n', Nothing, "", "no titles"},
    OptionSpec{"parsable", 'p', Nothing, "", "values between delimiters, one at the end too"},
    OptionSpec{"parsable2", 'P', Nothing, "", "values between delimiters"},
    OptionSpec{"partition", 'r', Value, "NAMES", "only of these partitions"},
    OptionSpec{"qos", 'q', Value, "NAMES", "only of these QOS: all jobs have normal"},
    OptionSpec{"starttime", 'S', Value, "TIME", "only what was there after (today, 0:00)"},
    OptionSpec{"state", 's', Value, "STATES", "only in these: PD, R, CD, F, TO, CA, OOM …"},
    OptionSpec{"timelimit-max", 'K', Value, "TIME", "only with a limit of at most this"},
    OptionSpec{"timelimit-min", 'k', Value, "TIME", "only with a limit of at least this"},
    OptionSpec{"truncate", 'T', Nothing, "", "cut times to those of -S and -E: not done"},
    OptionSpec{"uid", 'u', Value, "NAMES", "only of these users"},
    OptionSpec{"user", 0, Value, "NAMES", "the same"},
    OptionSpec{"units", 0, Value, "KMGTP", "memory in this unit"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"verbose", 'v', Nothing, "", "nothing more"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
    OptionSpec{"wckeys", 'W', Value, "KEYS", "only of these keys: no job has one"},
    OptionSpec{"yaml", 0, Maybe, "VERSION", "refused: --json has the same"},
};

constexpr HelpPage kPage{
    .name = "sacct",
    .operands = "",
    .summary = "jobs and steps as they are on record",
    .more =
        "Without -j it shows your jobs of today that could run or have run. Times are as in "
        "2026-11-20T08:30,\n08:30, now-2hours, today.",
    .examples =
        "sacct -j 12 -X -n -P -o State\nsacct -S now-7days -s F,TO -o jobid,jobname%20,"
        "exitcode\nsacct -j 12 -o jobid,maxrss,totalcpu,elapsed\nsacct -D -j 12"};

constexpr auto kDefault = "jobid,jobname,partition,account,alloccpus,state,exitcode";
constexpr auto kBrief = "jobid,state,exitcode";
constexpr auto kLong =
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"
    "maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,"
    "mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,"
    "reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,"
    "alloctres,tresusageinave,tresusageinmax,tresusageinmin,tresusageintot";

struct Question {
  JobQuery query;
  std::vector<std::string> users, groups, names, queues, accounts, nodes;
  std::map<std::string, std::vector<std::string>> steps;  // of jobs named with steps: which
  std::vector<std::string> jobs;
  std::vector<LiveState> states;  // empty: any
  std::int64_t since = 0, until = 0;
  std::int64_t least_limit = 0, most_limit = 0;
  bool is_empty = false;
};

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> parts;
  if (!text.empty())
    for (const std::string_view part : split(text, ',')) parts.emplace_back(part);
  return parts;
}

std::int64_t midnight(std::int64_t now) {
  const std::time_t moment = now;
  std::tm parts{};
  ::localtime_r(&moment, &parts);
  parts.tm_hour = parts.tm_min = parts.tm_sec = 0;
  return std::mktime(&parts);
}

/// "now-2hours" looks back; a day without a time begins at midnight.
Result<std::int64_t> when(const std::string& text, std::int64_t now) {
  if (lower(text) == "now") return now;
  return parse_past_moment(text, now);
}

Result<void> take_window(const Parsed& parsed, Question& question) {
  const std::int64_t now = unix_now();
  const bool names_jobs = parsed.has("jobs");
  question.since = names_jobs ? 0 : midnight(now);
  if (parsed.has("starttime")) {
    BERTH_TRY(question.since, when(parsed.value("starttime"), now));
  }
  if (parsed.has("endtime")) {
    BERTH_TRY(question.until, when(parsed.value("endtime"), now));
  }
  if (parsed.has("timelimit-min")) {
    BERTH_TRY(question.least_limit, parse_time_limit(parsed.value("timelimit-min")));
  }
  if (parsed.has("timelimit-max")) {
    BERTH_TRY(question.most_limit, parse_time_limit(parsed.value("timelimit-max")));
  }
  return {};
}

Result<Question> question_of(const Parsed& parsed) {
  Question question;
  BERTH_TRY_VOID(take_window(parsed, question));
  question.query.any_state = true;
  if (question.since > 0) question.query.ended_since = question.since;
  question.users = list_of(parsed.has("uid") ? parsed.value("uid") : parsed.value("user"));
  const bool is_everybody = parsed.has("allusers") || parsed.has("jobs") || ::geteuid() == 0;
  if (question.users.empty() && !is_everybody) question.query.user = kMe;
  question.groups = list_of(parsed.has("gid") ? parsed.value("gid") : parsed.value("group"));
  question.names = list_of(parsed.value("name"));
  question.queues = list_of(parsed.value("partition"));
  question.accounts = list_of(parsed.value("accounts"));
  BERTH_TRY(question.nodes, expanded_hosts(parsed.value("nodelist")));
  if (parsed.has("state")) {
    BERTH_TRY(const auto states, parse_slurm_states(parsed.value("state")));
    if (!states.any) question.states = states.states;
  }
  question.is_empty =
      !is_listed(lower(parsed.value("qos")), kQos) || !parsed.value("wckeys").empty();
  for (const std::string& one : list_of(parsed.value("jobs"))) {
    const auto dot = one.find('.');
    question.jobs.push_back(one.substr(0, dot));
    if (dot != std::string::npos) question.steps[one.substr(0, dot)].push_back(one.substr(dot + 1));
  }
  for (const std::string& job : question.jobs) BERTH_TRY_VOID(parse_job_names(job));
  return question;
}

/// What Slurm shows without -j and -s: all that could have run in the window.
bool is_in_window(const JobRow& job, const Question& question) {
  const bool is_named = !question.jobs.empty();
  const bool could_not_run = job.state == LiveState::Held || job.state == LiveState::Blocked;
  if (!is_named && question.states.empty() && could_not_run) return false;
  return question.until == 0 || job.submitted < question.until * 1'000'000;
}

bool is_wanted(const JobRow& job, const Question& question) {
  const auto among = [](const std::vector<std::string>& many, const std::string& one) {
    return many.empty() || std::ranges::find(many, one) != many.end();
  };
  const Account account = account_of(job.spec->user);
  const bool is_his = among(question.users, account.user) || among(question.users, account.uid);
  const bool is_theirs =
      among(question.groups, account.group) || among(question.groups, account.gid);
  const bool is_there =
      question.nodes.empty() || std::ranges::any_of(job.where, [&](const HeldDevices& held) {
        return among(question.nodes, held.node);
      });
  const bool has_state = question.states.empty() ||
                         std::ranges::find(question.states, job.state) != question.states.end();
  const std::int64_t limit = job.spec->time_limit;
  const bool fits = (question.least_limit == 0 || limit >= question.least_limit) &&
                    (question.most_limit == 0 || (limit > 0 && limit <= question.most_limit));
  return is_his && is_theirs && is_there && has_state && fits && !question.is_empty &&
         among(question.names, job.spec->name) && among(question.queues, partition_of(job)) &&
         among(question.accounts, account_name(job)) && is_in_window(job, question);
}

/// Everything a page is made of; rows borrow from it.
struct Record {
  ClusterView cluster;
  NodeTypes types;
  std::vector<JobRow> jobs;
  std::map<JobNumber, JobSteps> steps;
  std::map<JobNumber, std::vector<AttemptView>> attempts;
};

Result<Record> look(Scheduler& scheduler, const Question& question, const Parsed& parsed) {
  Record record;
  BERTH_TRY(record.cluster, scheduler.cluster());
  BERTH_TRY(const auto nodes, scheduler.nodes());
  record.types = types_of(nodes);
  JobQuery query = question.query;
  query.rows = Rows::WithJson;
  if (!question.jobs.empty()) {
    auto ids = resolve_jobs(scheduler, question.jobs, BareNumber::WholeArray);
    if (!ids && scheduler.last_status() == 404) return record;
    if (!ids) return tl::unexpected<Error>(ids.error());
    query.ids = *std::move(ids);
  }
  BERTH_TRY(JobRows rows, scheduler.jobs(query));
  if (const auto unknown = unknown_users(question.users, rows.jobs); !unknown.empty())
    return fail(fmt::format("error: Invalid user id: {}", unknown.front()));
  for (JobRow& job : rows.jobs)
    if (is_wanted(job, question)) record.jobs.push_back(std::move(job));
  std::vector<JobNumber> started;
  for (const JobRow& job : record.jobs)
    if (job.attempts > 0 || job.started > 0) started.push_back(job.number);
  BERTH_TRY(auto steps, scheduler.steps(started));
  for (JobSteps& one : steps) {
    const JobNumber number = one.job;
    record.steps.emplace(number, std::move(one));
  }
  if (parsed.has("duplicates"))
    for (const JobRow& job : record.jobs)
      if (job.attempts > 1) {
        BERTH_TRY(record.attempts[job.number], scheduler.attempts(job.number));
      }
  return record;
}

bool wants_step(const Question& question, const JobRow& job, const StepView& step) {
  for (const std::string& name : {job.slurm_id(), fmt::to_string(job.number)})
    if (const auto found = question.steps.find(name); found != question.steps.end())
      return std::ranges::find(found->second, step.id) != found->second.end();
  return true;
}

bool names_steps(const Question& question, const JobRow& job) {
  return question.steps.contains(job.slurm_id()) ||
         question.steps.contains(fmt::to_string(job.number));
}

double job_cpu_seconds(const Record& record, JobNumber job) {
  const auto found = record.steps.find(job);
  return found == record.steps.end() ? 0 : cpu_seconds_of(found->second.steps);
}

std::vector<AccountRow> rows_of(const Record& record, const Question& question,
                                const Parsed& parsed) {
  std::vector<AccountRow> rows;
  const auto lines = parsed.has("array") ? one_line_each(record.jobs) : folded_arrays(record.jobs);
  for (const QueueLine& line : lines) {
    const JobRow& job = *line.job;
    if (const auto earlier = record.attempts.find(job.number); earlier != record.attempts.end())
      for (const AttemptView& attempt : earlier->second)
        if (attempt.ended > 0 && &attempt != &earlier->second.back())
          rows.push_back({.job = job, .attempt = &attempt});
    if (!names_steps(question, job))
      rows.push_back({.job = job,
                      .indices = line.indices,
                      .cpu_seconds = job_cpu_seconds(record, job.number)});
    const auto steps = record.steps.find(job.number);
    if (parsed.has("allocations") || steps == record.steps.end()) continue;
    for (const StepView& step : steps->second.steps)
      if (wants_step(question, job, step)) rows.push_back({.job = job, .step = &step});
  }
  return rows;
}

Result<std::vector<SheetColumn>> columns_of(const Parsed& parsed) {
  const char* variable = ::getenv("SACCT_FORMAT");
  const std::string text = parsed.has("format")  ? parsed.value("format")
                           : parsed.has("brief") ? kBrief
                           : parsed.has("long")  ? kLong
                           : variable != nullptr ? variable
                                                 : kDefault;
  return sheet_columns(text, account_fields());
}

std::string table_of(const Record& record, const std::vector<AccountRow>& rows,
                     const std::vector<SheetColumn>& columns, const Parsed& parsed) {
  const std::string unit = upper(parsed.value("units"));
  const AccountFacts facts{
      .types = record.types,
      .cluster = record.cluster.name,
      .now = unix_now(),
      .units = {.wanted = unit.empty() ? '\0' : unit.front(), .is_kept = parsed.has("noconvert")}};
  std::vector<std::vector<std::string>> cells;
  for (const AccountRow& row : rows) {
    auto& line = cells.emplace_back();
    for (const SheetColumn& column : columns)
      line.push_back(account_value(row, column.field, facts));
  }
  const SheetStyle style{
      .is_parsable = parsed.has("parsable") || parsed.has("parsable2"),
      .has_last_delimiter = parsed.has("parsable"),
      .delimiter = parsed.has("delimiter") ? parsed.value("delimiter") : std::string("|"),
      .has_head = !parsed.has("noheader")};
  return sheet(columns, cells, style);
}

/// -B and --env-vars: what a job was given, as long as it is one's own.
Result<std::string> given_to_jobs(Scheduler& scheduler, const Record& record,
                                  const Parsed& parsed) {
  std::string text;
  for (const JobRow& row : record.jobs) {
    BERTH_TRY(const JobRow job, scheduler.job(row.number));
    const bool is_script = parsed.has("batch-script");
    const std::string title =
        fmt::format("{} for {}", is_script ? "Batch Script" : "Environment used", job.slurm_id());
    text += title + "\n" + std::string(80, '-') + "\n";
    if (is_script) text += job.spec->script.empty() ? "NONE\n" : job.spec->script;
    if (!is_script)
      for (const auto& [name, value] : job.spec->env) text += fmt::format("{}={}\n", name, value);
    if (!is_script && job.spec->env.empty()) text += "NONE\n";
  }
  return text;
}

Result<std::string> page_of(Scheduler& scheduler, const Question& question, const Parsed& parsed) {
  BERTH_TRY(const auto columns, columns_of(parsed));
  BERTH_TRY(const Record record, look(scheduler, question, parsed));
  if (parsed.has("batch-script") || parsed.has("env-vars"))
    return given_to_jobs(scheduler, record, parsed);
  const auto rows = rows_of(record, question, parsed);
  if (parsed.has("json")) {
    const AccountFacts facts{record.types, record.cluster.name, unix_now(), {}};
    return json_answer("jobs", account_json(rows, facts), "sacct", record.cluster);
  }
  return table_of(record, rows, columns, parsed);
}

}  // namespace

int run_sacct(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPage, kOptions, console)) return *code;
  if (parsed.has("helpformat")) return console.put(field_names(account_fields())), console.done();
  if (parsed.has("helpstate")) return console.put(state_names()), console.done();
  if (parsed.has("yaml")) return console.complain(kMisuse, "--yaml: there is --json");
  if (!parsed.operands.empty())
    return console.complain(
        kMisuse, fmt::format("what is '{}'? (jobs are named with -j)", parsed.operands.front()));
  const std::string unit = upper(parsed.value("units"));
  if (unit.size() > 1 || std::string_view("KMGTP").find(unit) == std::string_view::npos)
    return console.complain(kMisuse, "--units: one of K, M, G, T, P");
  if ((parsed.has("batch-script") || parsed.has("env-vars")) && !parsed.has("jobs"))
    return console.complain(kMisuse, "-B and --env-vars need -j");
  if (const auto columns = columns_of(parsed); !columns)
    return console.complain(kFailure, columns.error());
  const auto question = question_of(parsed);
  if (!question) return console.complain(kMisuse, question.error());
  if (const auto parser = check_parser(parsed.value("json")); !parser)
    return console.complain(kMisuse, parser.error());
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  const auto text = page_of(*found, *question, parsed);
  if (!text) return console.complain(kFailure, text.error());
  console.put(*text);
  return console.done();
}

}  // namespace berth::client
