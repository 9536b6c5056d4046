// squeue: the queue in the columns that scripts know.
#include <algorithm>
#include <array>
#include <charconv>
#include <thread>

#include <pwd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "client/array_fold.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/moment.h"
#include "client/selection.h"
#include "client/slurm/facts.h"
#include "client/slurm/help.h"
#include "client/slurm/json.h"
#include "client/slurm/queue_columns.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kOptions{
    OptionSpec{"account", 'A', Value, "NAMES", "only of these accounts"},
    OptionSpec{"all", 'a', Nothing, "", "everybody's (the default)"},
    OptionSpec{"array", 'r', Nothing, "", "one line for each job of an array, also while it waits"},
    OptionSpec{"array-unique", 0, Nothing, "", "the same"},
    OptionSpec{"clusters", 'M', Value, "NAMES", "of this cluster, which is named above the list"},
    OptionSpec{"federation", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"format", 'o', Value, "FORMAT", "columns, as in '%.18i %.9P %j'"},
    OptionSpec{"Format", 'O', Value, "FIELDS", "columns by name, as in jobid,name:20,state"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"helpformat", 0, Nothing, "", "the letters of -o"},
    OptionSpec{"helpFormat", 0, Nothing, "", "the names of -O"},
    OptionSpec{"helpstate", 0, Nothing, "", "the states of -t"},
    OptionSpec{"hide", 0, Nothing, "", "nothing: no partition is hidden"},
    OptionSpec{"iterate", 'i', Value, "SECONDS", "again and again"},
    OptionSpec{"jobs", 'j', Maybe, "IDS", "only these jobs"},
    OptionSpec{"json", 0, Maybe, "VERSION", "Slurm's JSON (v0.0.42)"},
    OptionSpec{"licenses", 'L', Value, "NAMES", "only with these licenses: no job has any"},
    OptionSpec{"local", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"long", 'l', Nothing, "", "more columns"},
    OptionSpec{"me", 0, Nothing, "", "only your own"},
    OptionSpec{"name", 'n', Value, "NAMES", "only of these names"},
    OptionSpec{"noconvert", 0, Nothing, "", "memory as it was given"},
    OptionSpec{"nodelist", 'w', Value, "NODES", "only on these nodes"},
    OptionSpec{"noheader", 'h', Nothing, "", "no line of titles"},
    OptionSpec{"only-job-state", 0, Nothing, "", "nothing: all is told at once"},
    OptionSpec{"partition", 'p', Value, "NAMES", "only of these partitions"},
    OptionSpec{"priority", 'P', Nothing, "", "a line for each partition a job waits in: it is one"},
    OptionSpec{"qos", 'q', Value, "NAMES", "only of these QOS: all jobs have normal"},
    OptionSpec{"reservation", 'R', Value, "NAME", "only of this reservation: there is none"},
    OptionSpec{"sibling", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"sort", 'S', Value, "LETTERS", "by these columns; - turns round (P,t,-p)"},
    OptionSpec{"start", 0, Nothing, "", "those that wait, with their expected start: not known"},
    OptionSpec{"states", 't', Value, "STATES", "PD, R, CG …, or all"},
    OptionSpec{"steps", 's', Maybe, "STEPS", "steps that run instead of jobs"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"user", 'u', Value, "NAMES", "only of these users"},
    OptionSpec{"verbose", 'v', Nothing, "", "nothing more"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
    OptionSpec{"yaml", 0, Maybe, "VERSION", "refused: --json has the same"},
};

constexpr HelpPage kPage{
    .name = "squeue",
    .operands = "",
    .summary = "jobs that wait or run",
    .more =
        "Without -t it shows what is not over, by partition, state and priority; with -t all "
        "also jobs\nthat ended in the last five minutes, with -t all -j those that ended ever.",
    .examples =
        "squeue --me\nsqueue -h -j 12 -o %T\nsqueue -O jobid,name:30,tres-per-node,reason\n"
        "squeue -s -u ann\nsqueue --json | jq '.jobs[].job_state[0]'"};

/// For so many seconds Slurm, as it is delivered, remembers a job that is over (MinJobAge).
constexpr std::int64_t kRemembered = 300;

constexpr auto kDefault = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr auto kLong = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr auto kStart = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
constexpr auto kSteps = "%.15i %.8j %.9P %.8u %.9M %N";
constexpr std::string_view kOrder = "P,t,-p";

struct Request {
  JobQuery query;
  std::vector<std::string> users, names, queues, accounts, nodes;  // of several; filtered here
  bool is_empty = false;  // asked for what nobody has: a reservation, a QOS
  Format format;
  std::string sort;
  double every = 0;
};

/// One value is asked of the scheduler, several are picked out here.
void one_or_many(const std::string& text, std::string& one, std::vector<std::string>& many) {
  if (text.empty()) return;
  for (const std::string_view part : split(text, ',')) many.emplace_back(part);
  if (many.size() == 1) one = many.front();
}

/// Users may be given by number.
void name_users(std::vector<std::string>& users, std::string& one) {
  for (std::string& user : users) {
    unsigned uid = 0;
    const auto [end, error] = std::from_chars(user.data(), user.data() + user.size(), uid);
    if (error != std::errc{} || end != user.data() + user.size()) continue;
    if (const passwd* entry = ::getpwuid(uid)) user = entry->pw_name;
  }
  if (users.size() == 1) one = users.front();
}

Result<Format> format_of(const Parsed& parsed) {
  const bool of_steps = parsed.has("steps");
  const auto columns = of_steps ? step_columns() : queue_columns();
  if (parsed.has("Format")) return parse_long_format(parsed.value("Format"), columns);
  const char* variable = ::getenv("SQUEUE_FORMAT");
  const std::string text = parsed.has("format")  ? parsed.value("format")
                           : of_steps            ? kSteps
                           : parsed.has("start") ? kStart
                           : parsed.has("long")  ? kLong
                           : variable != nullptr ? variable
                                                 : kDefault;
  return parse_format(text, columns);
}

Result<void> take_filters(const Parsed& parsed, Request& request) {
  JobQuery& query = request.query;
  one_or_many(parsed.value("user"), query.user, request.users);
  name_users(request.users, query.user);
  if (parsed.has("me")) query.user = kMe;
  one_or_many(parsed.value("name"), query.name, request.names);
  one_or_many(parsed.value("partition"), query.queue, request.queues);
  // Here alone: who is in no group has his own name for an account, which the scheduler does not
  // look for among groups.
  if (parsed.has("account"))
    for (const std::string_view part : split(parsed.value("account"), ','))
      request.accounts.emplace_back(part);
  if (parsed.has("nodelist")) {
    BERTH_TRY(request.nodes, expanded_hosts(parsed.value("nodelist")));
  }
  request.is_empty = !parsed.value("reservation").empty() || !parsed.value("licenses").empty() ||
                     !is_listed(lower(parsed.value("qos")), kQos);
  return {};
}

Result<Request> request_of(const Parsed& parsed) {
  Request request;
  BERTH_TRY_VOID(take_filters(parsed, request));
  if (parsed.has("yaml")) return fail("--yaml: there is --json");
  BERTH_TRY_VOID(check_parser(parsed.value("json")));
  JobQuery& query = request.query;
  if (parsed.has("states")) {
    BERTH_TRY(auto states, parse_slurm_states(parsed.value("states")));
    query.states = std::move(states.states);
    query.any_state = states.any;
  } else if (parsed.has("start") || parsed.has("steps")) {
    query.states = states_from(parsed.has("start") ? "PENDING" : "RUNNING");
    if (parsed.has("steps")) query.states.push_back(LiveState::Suspended);
  } else {
    query.any_state = !parsed.value("jobs").empty();
  }
  BERTH_TRY(request.format, format_of(parsed));
  const char* order = ::getenv("SQUEUE_SORT");
  request.sort = parsed.has("sort") ? parsed.value("sort") : order != nullptr ? order : kOrder;
  if (parsed.has("iterate")) {
    const std::string text = parsed.value("iterate");
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), request.every);
    if (error != std::errc{} || end != text.data() + text.size() || !(request.every > 0))
      return fail(fmt::format("--iterate={} is no number of seconds", text));
  }
  return request;
}

bool is_wanted(const JobRow& job, const Request& request) {
  const auto among = [](const std::vector<std::string>& many, const std::string& one) {
    return many.empty() || std::ranges::find(many, one) != many.end();
  };
  const bool on_node =
      request.nodes.empty() || std::ranges::any_of(job.where, [&](const HeldDevices& held) {
        return among(request.nodes, held.node);
      });
  return !request.is_empty && on_node && among(request.users, job.spec->user) &&
         among(request.names, job.spec->name) && among(request.queues, job.spec->queue) &&
         among(request.accounts, account_name(job));
}

/// What counts as a number is compared as one.
double number_by(const JobRow& job, char letter, std::int64_t now) {
  switch (letter) {
    case 'i':
    case 'A':
    case 'F': return static_cast<double>(job.number);
    case 'M': return elapsed_of(job, now);
    case 'p':
    case 'Q': return job.spec->priority;
    case 't':
    case 'T': return state_rank(job.state);
    case 'l': return job.spec->time_limit > 0 ? static_cast<double>(job.spec->time_limit) : 1e18;
    case 'S': return static_cast<double>(start_of(job));
    case 'e': return static_cast<double>(end_of(job, now));
    case 'V': return static_cast<double>(job.submitted);
    case 'C': return requested(job).cpus;
    case 'm': return job.spec->memory_mib;
    default: return 0;
  }
}

void sort_jobs(std::vector<JobRow>& jobs, const std::string& fields, const std::string& cluster) {
  constexpr std::string_view kNumbers = "iAFMpQtTlSeVCm";
  const std::int64_t now = unix_now();
  const NodeTypes types;
  const std::string no_indices;
  const auto words = split(fields, ',');
  for (auto word = words.rbegin(); word != words.rend(); ++word) {  // the first counts most
    std::string_view name = *word;
    const bool is_turned = name.starts_with('-');
    if (name.starts_with('-') || name.starts_with('+')) name.remove_prefix(1);
    if (name.empty()) continue;
    const char letter = name.front();
    const auto column = std::ranges::find(queue_columns(), letter, &ColumnName::letter);
    if (column == queue_columns().end()) continue;
    const auto place = static_cast<std::size_t>(column - queue_columns().begin());
    std::ranges::stable_sort(jobs, [&](const JobRow& a, const JobRow& b) {
      const JobRow& left = is_turned ? b : a;
      const JobRow& right = is_turned ? a : b;
      if (kNumbers.find(letter) != std::string_view::npos)
        return number_by(left, letter, now) < number_by(right, letter, now);
      return queue_value({left, no_indices, now, types, cluster}, place) <
             queue_value({right, no_indices, now, types, cluster}, place);
    });
  }
}

/// Columns that brief rows do not tell.
bool needs_whole_rows(const Request& request, const Parsed& parsed) {
  if (parsed.has("json")) return true;
  return std::ranges::any_of(request.format, [&](const FormatPart& part) {
    if (part.column == FormatPart::kNone || parsed.has("steps")) return false;
    const std::string_view name = queue_columns()[part.column].name;
    return name == "stdout" || name == "stderr";
  });
}

Result<std::vector<JobRow>> jobs_of(Scheduler& scheduler, const Request& request,
                                    const Parsed& parsed, const ClusterView& cluster,
                                    const Console& console) {
  JobQuery query = request.query;
  query.rows = needs_whole_rows(request, parsed)            ? Rows::WithJson
               : parsed.has("array") || parsed.has("steps") ? Rows::Brief
                                                            : Rows::Folded;
  if (query.ids.empty()) query.ended_since = unix_now() - kRemembered;
  BERTH_TRY(JobRows page, scheduler.jobs(query));
  for (const std::string& user : unknown_users(request.users, page.jobs))
    console.note(fmt::format("error: Invalid user: {}", user));
  if (query.ids.size() == 1 && page.jobs.empty() && query.any_state)
    return fail("slurm_load_jobs error: Invalid job id specified");  // scripts wait for this
  const bool shows_ended = parsed.has("states");
  std::erase_if(page.jobs, [&](const JobRow& job) {
    return !is_wanted(job, request) || (!shows_ended && is_over(job.state));
  });
  sort_jobs(page.jobs, request.sort, cluster.name);
  return std::move(page.jobs);
}

Result<std::string> step_page(Scheduler& scheduler, const Request& request, const Parsed& parsed,
                              const std::vector<JobRow>& jobs) {
  std::vector<JobNumber> numbers;
  for (const JobRow& job : jobs) numbers.push_back(job.number);
  BERTH_TRY(const auto all, scheduler.steps(numbers));
  std::string text;
  if (!parsed.has("noheader")) text += format_titles(request.format, step_columns());
  for (const JobRow& job : jobs) {
    const auto steps = std::ranges::find(all, job.number, &JobSteps::job);
    if (steps == all.end()) continue;
    for (const StepView& step : steps->steps) {
      const std::string id = fmt::format("{}.{}", job.slurm_id(), step.id);
      if (step.state != StepState::Running || !is_listed(parsed.value("steps"), id)) continue;
      text += format_line(request.format, [&](std::size_t column) {
        return step_value({job, step, unix_now()}, column);
      });
    }
  }
  return text;
}

Result<std::string> page_of(Scheduler& scheduler, const Request& request, const Parsed& parsed,
                            const Console& console) {
  BERTH_TRY(const ClusterView cluster, scheduler.cluster());
  if (parsed.has("clusters") && !is_listed(parsed.value("clusters"), cluster.name) &&
      parsed.value("clusters") != "all")
    return fail(fmt::format("No cluster '{}' known: this one is '{}'", parsed.value("clusters"),
                            cluster.name));
  BERTH_TRY(const auto nodes, scheduler.nodes());
  const NodeTypes types = types_of(nodes);
  BERTH_TRY(const auto jobs, jobs_of(scheduler, request, parsed, cluster, console));
  const std::int64_t now = unix_now();
  const auto lines = parsed.has("array") || parsed.has("array-unique") || parsed.has("json")
                         ? one_line_each(jobs)
                         : folded_arrays(jobs);
  if (parsed.has("json")) {
    Json rows = Json::array();
    for (const QueueLine& line : lines)
      rows.push_back(job_json(*line.job, line.indices, now, types, cluster.name));
    return json_answer("jobs", std::move(rows), "squeue", cluster,
                       {{"last_backfill", set_number(0)}, {"last_update", set_number(now)}});
  }
  std::string text;
  if (parsed.has("clusters")) text += fmt::format("CLUSTER: {}\n", cluster.name);
  if (parsed.has("long") && !parsed.has("noheader")) text += asctime_text(now);
  if (parsed.has("steps")) {
    BERTH_TRY(const std::string steps, step_page(scheduler, request, parsed, jobs));
    return text + steps;
  }
  if (!parsed.has("noheader")) text += format_titles(request.format, queue_columns());
  for (const QueueLine& line : lines)
    text += format_line(request.format, [&](std::size_t column) {
      return queue_value({*line.job, line.indices, now, types, cluster.name}, column);
    });
  return text;
}

std::optional<int> lists(const Parsed& parsed, Console& console) {
  const auto columns = parsed.has("steps") ? step_columns() : queue_columns();
  if (parsed.has("helpformat")) return console.put(column_letters(columns)), console.done();
  if (parsed.has("helpFormat")) return console.put(column_names(columns)), console.done();
  if (parsed.has("helpstate")) return console.put(state_names()), console.done();
  return std::nullopt;
}

/// Of -j and -s: "12.0" names a job by its step.
std::vector<std::string> named_jobs(const Parsed& parsed) {
  std::vector<std::string> names;
  if (!parsed.value("jobs").empty()) names.push_back(parsed.value("jobs"));
  if (!parsed.value("steps").empty())
    for (const std::string_view step : split(parsed.value("steps"), ','))
      names.emplace_back(step.substr(0, step.find('.')));
  return names;
}

/// "-j", "-hj", "--jobs", "-s", "--steps": without a list of their own.
bool wants_list(std::string_view word) {
  if (word.starts_with("--")) return word == "--jobs" || word == "--steps" || word == "--step";
  return word.starts_with('-') && (word.ends_with('j') || word.ends_with('s'));
}

}  // namespace

int run_squeue(std::span<const std::string> words, Console& console) {
  // Both may stand alone or be followed by their list, which no operand can be here.
  std::vector<std::string> joined;
  for (const std::string& word : words) {
    if (!joined.empty() && !word.empty() && !word.starts_with('-') && wants_list(joined.back()))
      joined.back() += joined.back().starts_with("--") ? "=" + word : word;
    else
      joined.push_back(word);
  }
  const Parsed parsed = parse_options(kOptions, joined, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPage, kOptions, console)) return *code;
  if (const auto code = lists(parsed, console)) return *code;
  if (!parsed.operands.empty())
    return console.complain(
        kMisuse, fmt::format("what is '{}'? (jobs are named with -j)", parsed.operands.front()));
  auto request = request_of(parsed);
  if (!request) return console.complain(kMisuse, request.error());
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  Scheduler& scheduler = *found;
  if (const auto names = named_jobs(parsed); !names.empty()) {
    auto ids = resolve_jobs(scheduler, names, BareNumber::WholeArray);
    if (!ids) return console.complain(kFailure, ids.error());
    request->query.ids = *std::move(ids);
  }
  while (true) {
    const auto text = page_of(scheduler, *request, parsed, console);
    if (!text) return console.complain(kFailure, text.error());
    if (!console.put(*text) || request->every <= 0) return console.done();
    std::this_thread::sleep_for(std::chrono::duration<double>(request->every));
  }
}

}  // namespace berth::client
